"""What the matrix is made of: runtimes, EPs, the model each EP runs, and one cell of the table."""
import dataclasses
import json
import os
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper

import watch

RUNTIMES = ["1.23.2", "1.24.4", "1.25.1", "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1", "1.32.0"]
QUICK = ["1.24.4", "1.30.0", "1.32.0"]
REFUSED = 5  # exit code of ortcrypt: unsupported


@dataclasses.dataclass
class Ep:
    name: str
    title: str    # in the table
    library: str
    model: str
    options: list = dataclasses.field(default_factory=list)

    def arguments(self):
        return ["--ep", self.name + "=" + self.library, *(a for option in self.options for a in ("--ep-option", option))]


@dataclasses.dataclass
class Cell:
    runtime: str
    ep: Ep
    embed: int
    route: str = "-"
    compile: str = "-"
    load: str = "-"
    compare: str = "-"
    result: str = "failed"
    reason: str = ""


class Broken(Exception):
    """A cell that failed: one sentence."""


def one_line(text):
    return " ".join(text.split())


class Rig:
    def __init__(self, work, build, deps, quick):
        self.work, self.build, self.deps, self.quick = work, build, deps, quick
        self.ortcrypt = os.path.join(build, "ortcrypt")
        self.direct = os.path.join(build, "tests", "matrix", "matrix_direct")
        self.key = os.path.join(work, "key.txt")
        models = os.path.join(deps, "models")
        recogniser = os.path.join(models, "ppocr_rec_fixed.onnx")
        mul = os.path.join(work, "mul.onnx")
        self.make_mul(mul)
        qnn = os.path.join(deps, "eps", "qnn", "onnxruntime_qnn", "libonnxruntime_providers_qnn.so")
        self.openvino_library = os.path.join(deps, "eps", "openvino", "onnxruntime_ep_openvino",
                                             "libonnxruntime_providers_openvino_plugin.so")
        self.reference = Ep("OrtcryptReference", "reference EP", os.path.join(build, "libortcrypt_reference_ep.so"), recogniser)
        self.cpp = Ep("OrtcryptCpp", "C++ test EP", os.path.join(build, "libortcrypt_ep_cpp.so"), mul)
        # the classifier for the quick subset: the simulator takes half a second for it, and eight for the recogniser
        self.qnn = Ep("QNNExecutionProvider", "QNN 2.7.0", qnn,
                      os.path.join(models, "ppocr_cls_fixed.onnx") if quick else recogniser, ["backend_type=htp", "soc_model=57"])
        self.openvino = Ep("OpenVINOExecutionProvider", "OpenVINO 1.8.1", os.path.join(build, "libortcrypt_openvino_rig.so"), recogniser)
        for needed in (qnn, self.openvino_library, *(self.runtime(version) for version in (QUICK if quick else RUNTIMES))):
            if not os.path.exists(needed):
                raise SystemExit(os.path.relpath(needed, deps) + " is not here: tools/setup --runtime all --eps fetches it")
        self.eps = [self.reference, self.cpp, self.qnn, self.openvino]
        self.call([self.ortcrypt, "keygen", "-o", self.key])
        with open(self.key, encoding="ascii") as file:
            self.recipient = next(line.split(": ")[1].strip() for line in file if line.startswith("# public key"))

    @staticmethod
    def make_mul(path):
        """What the C++ test EP takes: Mul nodes."""
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 16]) for name in ("x", "y", "z")]
        nodes = [helper.make_node("Mul", ["x", "y"], ["xy"]), helper.make_node("Mul", ["xy", "y"], ["z"])]
        graph = helper.make_graph(nodes, "mul", values[:2], values[2:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    def environment(self, where, **more):
        """Home and temporary files in scratch folders; nothing of the caller's that would change what is tried."""
        named = {name: os.path.join(where, name.lower()) for name in ("HOME", "TMPDIR")}
        for folder in named.values():
            os.makedirs(folder, exist_ok=True)
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ORTCRYPT_OPENVINO": self.openvino_library, **named, **more}

    def runtime(self, version):
        return os.path.join(self.deps, "ort", version, "libonnxruntime.so." + version)

    def call(self, command):
        subprocess.run(command, cwd=self.work, env=self.environment(self.work), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, check=True)


class Pair:
    """One runtime and one EP: a bundle, the EP run directly, and a cell for each embed mode."""

    def __init__(self, rig, runtime, ep):
        self.rig, self.version, self.ep = rig, runtime, ep
        self.where = os.path.join(rig.work, runtime + "-" + ep.name)
        self.bundle = os.path.join(self.where, "model.ortc")
        self.inputs = os.path.join(self.where, "inputs")
        self.wanted = None
        os.makedirs(self.inputs)
        random = np.random.default_rng(1)
        graph = onnx.load(ep.model, load_external_data=False).graph
        self.input_names = [value.name for value in graph.input]
        for value in graph.input:
            shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
            np.save(os.path.join(self.inputs, value.name + ".npy"), random.random(shape, np.float32))
        rig.call([rig.ortcrypt, "encrypt", ep.model, "-o", self.bundle, "-r", rig.recipient])

    def trace(self, name, command):
        return watch.run(command, self.where, self.rig.environment(self.where), os.path.join(self.where, name + ".strace"))

    def run_ortcrypt(self, name, verb, *arguments):
        command = [self.rig.ortcrypt, *verb, "--ort", self.rig.runtime(self.version), *self.ep.arguments(), *arguments, "--json"]
        code, out, err, seen = self.trace(name, command)
        try:
            answer = json.loads(out)
        except ValueError:
            raise Broken(f"{verb[0]}: exit code {code} and no JSON: {one_line(out + err)[-300:]}") from None
        return code, answer, seen

    def find_route(self):
        try:
            command = [self.rig.ortcrypt, "eps", "--ort", self.rig.runtime(self.version), "--ep", self.ep.name + "=" + self.ep.library, "--json"]
            done = subprocess.run(command, cwd=self.where, env=self.rig.environment(self.where), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300, check=False)
            route = next((ep["route"] for ep in json.loads(done.stdout)["eps"] if ep["name"] == self.ep.name), "none")
            return "tried out" if route == "unproven" else route
        except (ValueError, KeyError):
            return "none"

    def run_directly(self):
        """The EP on the plaintext model, without ortcrypt and bridge: raw bytes of each output."""
        if self.wanted is None:
            outputs = os.path.join(self.where, "direct")
            os.makedirs(outputs)
            command = [self.rig.direct, "run", self.rig.runtime(self.version), self.ep.name, self.ep.library, self.ep.model, self.inputs,
                       outputs, *self.ep.options]
            done = subprocess.run(command, cwd=outputs, env=self.rig.environment(self.where, ORT_DISABLE_TELEMETRY="1"),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600, check=False)
            if done.returncode != 0:
                raise Broken("run directly: " + one_line(done.stderr.decode(errors="replace"))[-300:])
            self.wanted = [open(os.path.join(outputs, f"{i}.bin"), "rb").read() for i in range(len(os.listdir(outputs)))]
        return self.wanted

    def cell(self, embed):
        cell = Cell(self.version, self.ep, embed)
        try:
            cell.route = self.find_route()
            self.compile(cell)
            if cell.result != "refused":
                outputs = self.load(cell)
                self.compare(cell, outputs)
                cell.result = "passed"
        except Broken as broken:
            cell.reason = str(broken)
        except subprocess.TimeoutExpired as late:
            cell.reason = f"{os.path.basename(late.cmd[-1])}: not done after {late.timeout:.0f} s"
        return cell

    def compile(self, cell):
        cell.compile = "failed"
        code, answer, seen = self.run_ortcrypt(f"compile{cell.embed}", ["compile", self.bundle, "-i", self.rig.key], "--optimize", "basic",
                                               "--variant", f"embed{cell.embed}", *(["--embed"] if cell.embed else []))
        if code == REFUSED:
            if seen.writes:
                raise Broken("refused, and yet opened for writing: " + ", ".join(os.path.relpath(path, self.where) for path in seen.writes[:3]))
            error = answer["error"]
            if not error["message"] or not error["hint"]:
                raise Broken(f"refused without saying why: {error}")
            cell.compile, cell.result = "refused", "refused"
            cell.reason = error["message"] + ": " + error["hint"]
            return
        if code != 0:
            raise Broken("compile: " + one_line(answer["error"]["message"]))
        blobs = answer["blobs"]
        if answer["ep_context_nodes"] < 1 or not answer["verified"] or (blobs == 0) != bool(cell.embed):
            raise Broken(f"compile: {answer['ep_context_nodes']} EPContext nodes, {blobs} blobs, verified: {answer['verified']}")
        self.check_writes(seen, "compile", self.bundle)
        if not any(path.startswith(self.bundle) for path in seen.writes):
            raise Broken("compile: strace saw no write into the bundle")
        cell.compile = "ok"

    def load(self, cell):
        cell.load = "failed"
        results = os.path.join(self.where, "results")
        outputs = os.path.join(results, f"embed{cell.embed}")
        os.makedirs(results, exist_ok=True)
        given = [a for name in self.input_names for a in ("--input", name + "=" + os.path.join(self.inputs, name + ".npy"))]
        code, answer, seen = self.run_ortcrypt(f"run{cell.embed}", ["run", self.bundle, "-i", self.rig.key], "--variant",
                                               f"embed{cell.embed}", *given, "--output", outputs)
        if code != 0:
            raise Broken("run: " + one_line(answer["error"]["message"]))
        self.check_writes(seen, "run", results)
        cell.load = "ok"
        return [np.load(os.path.join(outputs, output["file"])) for output in answer["outputs"]]

    def check_writes(self, seen, verb, *folders):
        outside = seen.outside(*folders)
        if outside:
            names = sorted({os.path.relpath(path, self.where) for path in outside})
            raise Broken(f"{verb}: opened for writing outside the bundle: " + ", ".join(names[:3]))

    def compare(self, cell, outputs):
        cell.compare = "failed"
        wanted = self.run_directly()
        if len(wanted) != len(outputs) or not outputs:
            raise Broken(f"{len(outputs)} outputs, directly {len(wanted)}")
        for got, raw in zip(outputs, wanted):
            want = np.frombuffer(raw, np.float32).reshape(got.shape) if got.nbytes == len(raw) else None
            if want is None or got.tobytes() != raw:
                by = "its size" if want is None else f"{np.abs(got - want).max():.3g} at most"
                raise Broken(f"an output differs from the EP's own by {by}")
            if not np.isfinite(got).all() or np.ptp(got) == 0:
                raise Broken("the outputs say nothing: all the same, or not finite")
        cell.compare = "equal"

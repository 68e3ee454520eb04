"""What the matrix rests on, tried each time: that the watch sees what EPs and a runtime do write when nobody stops them."""
import os
import subprocess

import watch
from rig import Broken

RUNTIME = "1.30.0"


def must(condition, sentence):
    if not condition:
        raise Broken(sentence)


def compiled_directly(rig, name, ep, binary_folder):
    """An application without callbacks: what the watch saw, and where it ran."""
    where = os.path.join(rig.work, "control-" + name)
    os.makedirs(where)
    out = os.path.join(where, "out.X", "compiled.onnx")
    os.makedirs(os.path.dirname(out))
    command = [rig.direct, "compile", rig.runtime(RUNTIME), ep.name, ep.library, ep.model, out, binary_folder, *ep.options]
    code, _, err, seen = watch.run(command, where, rig.environment(where, ORT_DISABLE_TELEMETRY="1"), os.path.join(where, "strace"))
    must(code == 0, f"{ep.title} did not compile: {err[-300:]}")
    return seen, where, out


def blob_is_seen(rig):
    """Without callbacks the EP's blob is a file, and the watch names it."""
    for ep in (rig.reference, rig.openvino, rig.qnn):
        seen, where, out = compiled_directly(rig, ep.name, ep, "")
        blobs = [path for path in seen.writes if path != out and os.path.isfile(path) and os.path.getsize(path) > 100000]
        must(blobs, f"{ep.title} wrote a blob, and the watch did not see it: {seen.writes}")
        must(seen.outside(os.path.join(where, "elsewhere")), "a write outside is not told from one inside")
    return "the blob that an EP writes when there are no callbacks: reference EP, OpenVINO, QNN"


def qnn_leaves_its_folder(rig):
    """QNN makes the file's name of the text that names a folder: out.X/ gives out_qnn.bin, beside that folder."""
    seen, where, _ = compiled_directly(rig, "qnn-folder", rig.qnn, "out.X/")
    leaked = [path for path in seen.writes if path.endswith("_qnn.bin") and not path.startswith(os.path.join(where, "out.X") + "/")]
    must(leaked, f"QNN wrote its blob where it was told: {seen.writes}")
    return "QNN's blob outside the folder that it was told: " + os.path.relpath(leaked[0], where)


def telemetry(rig):
    """1.30.0 writes into the home folder, but not with ORT_DISABLE_TELEMETRY=1."""
    found = []
    for disabled in ("0", "1"):
        where = os.path.join(rig.work, "control-telemetry" + disabled)
        inputs, outputs = os.path.join(where, "inputs"), os.path.join(where, "outputs")
        for folder in (inputs, outputs):
            os.makedirs(folder)
        subprocess.run([os.sys.executable, "-c", "import numpy, sys\nfor n in 'xy': numpy.save(sys.argv[1] + '/' + n, numpy.ones((16, 16), 'f4'))",
                        inputs], check=True)
        command = [rig.direct, "run", rig.runtime(RUNTIME), rig.cpp.name, rig.cpp.library, rig.cpp.model, inputs, outputs]
        environment = rig.environment(where, **({"ORT_DISABLE_TELEMETRY": "1"} if disabled == "1" else {}))
        code, _, err, seen = watch.run(command, where, environment, os.path.join(where, "strace"))
        must(code == 0, "the C++ test EP did not run: " + err[-300:])
        found.append(seen.outside(outputs))
    must(found[0], "ONNX Runtime's telemetry wrote nothing, or the watch did not see it")
    must(not found[1], f"with ORT_DISABLE_TELEMETRY=1 something was written: {found[1]}")
    return f"ONNX Runtime's telemetry: {len(set(found[0]))} files in the home and temporary folders, none with ORT_DISABLE_TELEMETRY=1"


ALL = [blob_is_seen, qnn_leaves_its_folder, telemetry]

"""What loading may cost at most: each rule against each case it speaks of. Bounds are ratios within one run of the benchmark."""

import statistics
from collections import namedtuple

Check = namedtuple("Check", "rule case value bound verdict")
MIB = 2**20
SMALL = 100 * MIB  # models below may take SMALL_MORE beyond the plaintext load
SMALL_MORE = 24 * MIB


def new_enough(runtime):
    """From 1.31 on ONNX Runtime can borrow external weights."""
    return int(runtime.split(".")[1]) >= 31


class Loads:
    """Rows of loading, looked up by case; ratios are medians of the ratios of each turn."""

    def __init__(self, rows):
        self.rows = {}
        for row in rows:
            key = (row["workload"], row["runtime"], row["prepacking"], row["way"], row["cache"])
            self.rows.setdefault(key, {})[row["turn"]] = row

    def has(self, case, way, cache="warm"):
        return (*case, way, cache) in self.rows

    def median(self, case, way, *fields, cache="warm"):
        rows = self.rows.get((*case, way, cache))
        return statistics.median(sum(row[f] for f in fields) for row in rows.values()) if rows else None

    def ratio(self, case, way, other, *fields, cache="warm"):
        """None when no turn has both."""
        ours, theirs = self.rows.get((*case, way, cache), {}), self.rows.get((*case, other, cache), {})
        both = [sum(ours[t][f] for f in fields) / max(sum(theirs[t][f] for f in fields), 1e-9) for t in ours if t in theirs]
        return statistics.median(both) if both else None

    def same_outputs(self, case, way):
        hashes = {row["hash"] for w in (way, "plain") for cache in ("warm", "cold") for row in self.rows.get((*case, w, cache), {}).values()}
        return len(hashes) <= 1

    def cases(self):
        return list(dict.fromkeys(key[:3] for key in self.rows))


def say(case):
    return f"{case[0]}, {case[1]}, prepacking {'on' if case[2] else 'off'}"


def check(rule, case, value, bound, at_least=False):
    met = None if value is None else value >= bound if at_least else value <= bound
    return Check(rule, case, value, ("at least " if at_least else "") + f"{bound:.2f}", "not measured" if met is None else "met" if met else "MISSED")


def peak_checks(loads, case, small):
    """`small`: the model has fewer than SMALL bytes."""
    for way in ("ortcrypt", "split", "lazy", "split lazy"):
        if not loads.has(case, way):
            continue
        value = loads.ratio(case, way, "plain", "peak")
        borrowing = new_enough(case[1]) and case[2] and (case[0].startswith("external") or way == "split")
        bound = 0.95 if borrowing and not small else 1.05
        if small:
            plain = loads.median(case, "plain", "peak")
            bound = bound if plain is None else bound + SMALL_MORE / plain
        yield check("peak / plain", f"{say(case)}, {way}", value, bound)


def time_checks(loads, case):
    external, newer, both = case[0].startswith("external"), new_enough(case[1]), ("create_s", "first_s")
    if external and case[2]:
        yield check("create + first / plain, external", say(case), loads.ratio(case, "ortcrypt", "plain", *both), 1.6 if newer else 2.3)
    if case[0] == "embedded" and case[2]:
        yield check("create + first / plain, embedded", say(case), loads.ratio(case, "ortcrypt", "plain", *both), 1.15)
        yield check("split / embedded (plain), create + first", say(case), loads.ratio(case, "split", "plain", *both), 0.65 if newer else 0.9)
    if external and newer and not case[2] and case[0] != "external wide":
        yield check("lazy: create / plain create", say(case), loads.ratio(case, "lazy", "plain", "create_s"), 2)
    if external:
        yield check("memory / documented flow", say(case), loads.ratio(case, "ortcrypt", "seed", "peak"), 0.56 if case[2] else 0.55)
        bound = (0.6 if newer else 0.8) if case[2] else (0.35 if newer else 0.7)
        yield check("time / documented flow", say(case), loads.ratio(case, "ortcrypt", "seed", *both), bound)


def load_checks(loads, size_of):
    """size_of: bytes of a workload's weights."""
    for case in loads.cases():
        yield from peak_checks(loads, case, size_of(case[0]) < SMALL)
        yield from time_checks(loads, case)
        for way in dict.fromkeys(key[3] for key in loads.rows if key[:3] == case):
            if not loads.same_outputs(case, way):
                yield Check("outputs equal plain's", f"{say(case)}, {way}", None, "", "MISSED")


def work_checks(work, data_len):
    def median(name):
        return statistics.median(work[name]) if work.get(name) else None

    def over(one, other):
        return None if median(one) is None or median(other) is None else median(one) / median(other)

    openssl = median("openssl_decrypt")
    if openssl is not None and data_len / openssl < 3e9:
        yield check("speed of decrypting, 2 threads", "of `openssl speed` (below 3 GB/s)", over("openssl_decrypt", "read_decrypt_2_threads"), 0.9, True)
    else:
        yield check("speed of decrypting, 2 threads", "of read() into the same pages", over("read_file", "read_decrypt_2_threads"), 0.6, True)
    yield check("encrypt to memory / age", "external", over("encrypt_memory", "age_encrypt_memory"), 0.8)
    yield check("encrypt to disk / dd conv=fsync", "external", over("encrypt_disk", "dd_disk"), 1.3)
    yield check("compile: peak / plain compile", "external, 1.32.0, reference EP", over("compile_ortcrypt_peak", "compile_plain_peak"), 1.05)

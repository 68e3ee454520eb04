"""The tables: everything measured, and each bound with its verdict."""

import statistics

import rules

MIB = rules.MIB
NAMES = {
    "read_decrypt_2_threads": "decrypted into fresh memory, 2 threads",
    "read_file": "read() into the same memory",
    "openssl_decrypt": "`openssl speed -evp aes-256-gcm -decrypt -bytes 16384`, one core, for as many bytes",
    "encrypt_memory": "`ortcrypt encrypt` to memory (tmpfs)",
    "age_encrypt_memory": "`age -r` to memory",
    "decrypt_memory": "`ortcrypt decrypt` to memory",
    "age_decrypt_memory": "`age -d` to memory",
    "encrypt_disk": "`ortcrypt encrypt` to disk (every file fsynced)",
    "dd_disk": "`dd conv=fsync` to disk",
    "encrypt_split_memory": "`ortcrypt encrypt --split` of an embedded model to memory, the way back proven",
    "verify": "`ortcrypt verify` with a key: every byte of the bundle, hashed and decrypted",
    "cobblestone_encrypt": "`cryptography.cobblestone`, encrypting in memory",
    "cobblestone_decrypt": "`cryptography.cobblestone`, decrypting in memory",
}


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def load_table(loads):
    yield "| model | runtime | prepacking | way | create s | first s | both, x plain | peak MiB | x plain | steady MiB | x plain | cold: both s | x plain |"
    yield "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    both = ("create_s", "first_s")
    for case in loads.cases():
        for way in dict.fromkeys(key[3] for key in loads.rows if key[:3] == case):
            peak, steady = loads.median(case, way, "peak"), loads.median(case, way, "resident")
            cells = [case[0], case[1], "on" if case[2] else "off", way, number(loads.median(case, way, "create_s"), 3),
                     number(loads.median(case, way, "first_s"), 3), number(loads.ratio(case, way, "plain", *both)),
                     number(peak and peak / MIB, 0), number(loads.ratio(case, way, "plain", "peak")),
                     number(steady and steady / MIB, 0), number(loads.ratio(case, way, "plain", "resident")),
                     number(loads.median(case, way, *both, cache="cold")), number(loads.ratio(case, way, "plain", *both, cache="cold"))]
            yield "| " + " | ".join(cells) + " |"


def work_table(work, data_len):
    yield "| what | s | GB/s |"
    yield "|---|--:|--:|"
    for name, text in NAMES.items():
        if work.get(name):
            seconds = statistics.median(work[name])
            yield f"| {text} | {seconds:.3f} | {data_len / seconds / 1e9:.2f} |"


def compile_table(work):
    yield "| compiling with the reference EP, 1.32.0 | s | peak MiB |"
    yield "|---|--:|--:|"
    for mode, text in (("plain", "`CompileModel` from file to file"), ("ortcrypt", "`ortcrypt_compile`, the result loaded once"),
                       ("unchecked", "`ortcrypt_compile` without loading the result")):
        if work.get(f"compile_{mode}"):
            yield f"| {text} | {statistics.median(work[f'compile_{mode}']):.2f} | {statistics.median(work[f'compile_{mode}_peak']) / MIB:.0f} |"


def check_table(checks):
    yield "| bound | case | measured | at most | |"
    yield "|---|---|--:|--:|---|"
    for each in checks:
        yield f"| {each.rule} | {each.case} | {number(each.value)} | {each.bound} | {each.verdict} |"


def summary(checks):
    """One line per rule: in how many cases it is met."""
    yield "| bound | met | missed | not measured |"
    yield "|---|--:|--:|--:|"
    for rule in dict.fromkeys(each.rule for each in checks):
        verdicts = [each.verdict for each in checks if each.rule == rule]
        yield f"| {rule} | {verdicts.count('met')} | {verdicts.count('MISSED')} | {verdicts.count('not measured')} |"


def count(checks):
    met, missed = (sum(each.verdict == verdict for each in checks) for verdict in ("met", "MISSED"))
    rest = len(checks) - met - missed
    return f"{met} of {len(checks)} bounds met, {missed} missed" + (f", {rest} not measured" if rest else "")


def whole(results, checks):
    loads = rules.Loads(results["loads"])
    turns = {row["turn"] for row in results["loads"] if row["cache"] == "warm"}
    yield f"{results['machine']}; {results['mib']} MiB of weights (\"x4\": four times as much); up to {len(turns)} turns, {results['minutes']:.0f} minutes; "
    yield f"load average before: {results['load_average']:.1f}; mmap threshold of malloc: {results['malloc']}."
    yield ""
    yield from load_table(loads)
    yield ""
    yield from work_table(results["work"], results["data_len"])
    yield ""
    yield from compile_table(results["work"])
    yield ""
    yield from check_table(checks)
    yield ""
    yield from summary(checks)
    if results["failures"]:
        yield ""
        yield "Not measured:"
        yield ""
        for each in {f["what"]: f for f in results["failures"]}.values():
            yield f"- {each['what']}: {each['why']}"
    yield ""
    yield count(checks)

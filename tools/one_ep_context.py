"""Makes the one source file that an EP author copies out of src/ep_context. Usage: one_ep_context.py OUTPUT.c"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """/*
 * ortcrypt_ep_context.c: EPContext data through the application's callbacks, on every era of ONNX Runtime.
 *
 * One file made of ortcrypt's src/ep_context; copy it and ep_context.h (and ep_context.hpp) into an execution provider. It needs
 * ONNX Runtime's C API headers and libc. Compile as C11. Its functions are not seen outside the library they are linked into, but
 * for the entry point ortcrypt_ep_attach; define ORTCRYPT_EP_CONTEXT_SHARED for the opposite.
 */
#define ORTCRYPT_EP_CONTEXT_ONE_FILE 1
#ifndef ORTCRYPT_EP_CONTEXT_SHARED
#define ORTCRYPT_EP_CONTEXT_LOCAL 1
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
"""
INCLUDE = re.compile(r'^#include "(?:ep_context/internal|ortcrypt/ep_context)\.h"\n', re.M)
GNU_SOURCE = re.compile(r"^#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n", re.M)
SYSTEM = re.compile(r"^#include <[^>]+>\n", re.M)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    paths = [os.path.join(ROOT, "src", "ep_context", "internal.h")]
    paths += sorted(glob.glob(os.path.join(ROOT, "src", "ep_context", "*.c")))
    includes, bodies = set(), []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = GNU_SOURCE.sub("", INCLUDE.sub("", file.read()))
        includes.update(SYSTEM.findall(text))
        bodies.append(f"\n/* ---- {os.path.basename(path)} ---- */\n\n" + re.sub(r"\n{3,}", "\n\n", SYSTEM.sub("", text)))
    os.makedirs(os.path.dirname(os.path.abspath(sys.argv[1])), exist_ok=True)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(sorted(includes)) + '\n#include "ep_context.h"\n' + "".join(bodies))


if __name__ == "__main__":
    main()

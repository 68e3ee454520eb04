"""Runs a command on a terminal of its own and answers its questions.
Usage: on_terminal.py QUESTION ANSWER [QUESTION ANSWER]... -- COMMAND...   Prints what the terminal showed; exits as the command did."""
import os
import pty
import select
import sys

split = sys.argv.index("--")
dialogue = sys.argv[1:split]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])
shown = b""
while True:
    ready, _, _ = select.select([terminal], [], [], 120)
    if not ready:
        sys.exit("nothing came for two minutes; shown so far: %r" % shown)
    try:
        some = os.read(terminal, 4096)
    except OSError:
        break
    if not some:
        break
    shown += some
    if dialogue and shown.endswith(dialogue[0].encode()):
        os.write(terminal, dialogue[1].encode() + b"\n")
        dialogue = dialogue[2:]
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
if dialogue:
    sys.exit("never asked: %s" % dialogue[0])
sys.exit(os.waitstatus_to_exitcode(status))

"""What a command opened for writing, created, renamed or linked, seen by strace (attempts that the kernel refused count too)."""
import os
import re
import subprocess

CALLS = ("open,openat,openat2,creat,truncate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,mknod,mknodat,"
         "setxattr,lsetxattr")
# Not files: descriptors of terminals, and names of the process's own threads.
ALLOWED = re.compile(r"/dev/(null|tty)|/proc/(self|\d+)/task/\d+/comm")
REFUSALS = ("EACCES", "EPERM", "EROFS", "EXDEV")
LINE = re.compile(r"(?P<pid>\d+) +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|\?)(?P<rest>.*)", re.S)
NAMED = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>(?:[^"\\]|\\.)*)"')
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_TMPFILE")


class Watch:
    """Calls of one command. `writes`: absolute paths, in order, without what ALLOWED matches."""

    def __init__(self, trace, folder):
        self.writes = []
        begun = {}
        with open(trace, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                pid = line.split(" ", 1)[0]
                if line.rstrip().endswith("<unfinished ...>"):
                    begun[pid] = line[:line.rindex("<unfinished ...>")]
                    continue
                resumed = re.match(r"\d+ +<\.\.\. \w+ resumed>", line)
                if resumed:
                    line = begun.pop(pid, "") + line[resumed.end():].lstrip(" ")
                self.take(LINE.match(line.rstrip("\n")), folder)

    def take(self, call, folder):
        if call is None:
            return
        failed = call["result"] in ("-1", "?")
        if failed and not call["rest"].strip().startswith(REFUSALS):
            return
        opens = call["call"].startswith("open")
        if opens and not WRITING.search(call["arguments"]):
            return
        names = list(NAMED.finditer(call["arguments"]))
        if call["call"].startswith("symlink"):
            names = names[-1:]  # the first is a text
        if opens:
            names = names[:1]
        opened = re.match(r"<(.*)>", call["rest"])
        for name in names:
            path = os.path.join(folder, name["folder"] or "", name["name"])
            if opens and opened and not failed:
                path = opened[1]
            if not ALLOWED.fullmatch(path):
                self.writes.append(os.path.normpath(path))

    def outside(self, *folders):
        """Writes that are in none of the folders."""
        inside = tuple(os.path.realpath(folder) for folder in folders)
        return [path for path in self.writes if not any(path == folder or path.startswith(folder + "/") for folder in inside)]


def run(command, folder, environment, trace, timeout=600):
    """Runs it under strace. Returns (exit code, stdout, stderr, Watch)."""
    strace = ["strace", "-f", "-qq", "-y", "--seccomp-bpf", "-s", "4096", "-e", "trace=" + CALLS, "-e", "signal=none", "-o", trace]
    done = subprocess.run([*strace, *command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), Watch(trace, folder)

"""What Linux knows of a process: memory, CPU time, wake-ups, children."""

import os
import time


def cpu(pid):
    """CPU seconds of a process with all its threads, ended ones too; not of its children."""
    # The kernel's id of the CPU clock of another process (see clock_getcpuclockid).
    return time.clock_gettime((~pid << 3) | 2)


def _lines(path):
    with open(path) as file:
        return dict(line.split(":", 1) for line in file if ":" in line)


def pss(pid):
    """MiB of memory, shared pages by share."""
    return int(_lines(f"/proc/{pid}/smaps_rollup")["Pss"].split()[0]) / 1024


def parts(pid):
    """PSS by kind, in MiB: anonymous memory, and pages of files (the program itself)."""
    lines = _lines(f"/proc/{pid}/smaps_rollup")
    return {kind: int(lines[f"Pss_{kind}"].split()[0]) / 1024 for kind in ("Anon", "File", "Shmem")}


def peak(pid):
    """MiB of resident memory at most so far."""
    return int(_lines(f"/proc/{pid}/status")["VmHWM"].split()[0]) / 1024


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


def wakes(pid):
    """How often its threads that live went to sleep by themselves."""
    count = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        count += int(_lines(f"/proc/{pid}/task/{task}/status")["voluntary_ctxt_switches"])
    return count


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def steady(pid):
    """An open descriptor of a process, by which it can be waited for with poll."""
    return os.pidfd_open(pid)

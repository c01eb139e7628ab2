"""The one tool that our small agents have, and how far they go."""

import subprocess

STEPS = 200
ANSWER = 400


def shell(command: str) -> str:
    """Runs a command in the working folder and gives what it prints.

    Args:
        command: The command, for sh.
    """
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30)
    return done.stdout + done.stderr or "(no output)"

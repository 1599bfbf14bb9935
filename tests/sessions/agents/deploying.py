"""An agent for the page on runs: a turn, an approval, and a deployment that needs a file named `token`."""

import os

from ralf.agent import AgentRun, Retry, run_agent


def turn(run: AgentRun) -> None:
    if run.iteration == 1:
        run.stream(b"one\x1b[31m two\n")
        answer = run.once("model", lambda key: "the answer is 17")
        run.continue_with(answer.encode(), state=b"the conversation")
    elif not run.resumed:
        run.pause("approval", 3_600)
    elif not os.path.exists("token"):
        raise PermissionError("the secret is 17")
    else:
        run.complete(b"deployed")


if __name__ == "__main__":
    print(run_agent(turn, "deploy", retry=Retry("fixed", 2, 0.0), wait=False).status)

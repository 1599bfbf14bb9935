#!/usr/bin/env bash
# The RALF loop as its tree has it: one process per iteration, prompt on stdin, output into a log, a promise tag at its
# end. With the lines that docs/ralf-loop.md adds: `start` behind the prompt, `end` behind the run.
#
#   loop.sh PROJECT FIRST LAST      runs the iterations FIRST to LAST
#
# PLAN/N holds what the stand-in agent does in iteration N: "TASK HOW WHEN"; the folder's name is made by HOW.
set -u
project=$1 first=$2 last=$3
door=$project/.autonomous/context/hooks/context-checkpoint.sh
[ -n "${LOOP_START:-}" ] || LOOP_START=$door
export RALF_PROJECT_DIR=$project

for ((number = first; number <= last; number++)); do
    read -r task how when <"$LOOP_PLAN/$number"
    stamp=$(printf '20260201_12%02d%02d' $((number / 60)) $((number % 60)))
    case $how in
        suffix) RALF_RUN_ID=run-$stamp-$task ;;
        *) RALF_RUN_ID=run-$stamp ;;
    esac
    export RALF_RUN_ID RALF_RUN_DIR=$project/.autonomous/runs/$RALF_RUN_ID RALF_LOOP_NUMBER=$number RALF_TASK_ID=$task
    mkdir -p "$RALF_RUN_DIR"
    for name in THOUGHTS DECISIONS ASSUMPTIONS LEARNINGS RESULTS; do
        printf '# %s\n\n<!-- RALF_TEMPLATE: UNFILLED -->\n\n**Run:** %s\n\nFILL_ME\n' "$name" "$RALF_RUN_ID" >"$RALF_RUN_DIR/$name.md"
    done
    if [ "$how" = metadata ]; then
        printf 'loop:\n  number: %s\nstate:\n  task_claimed: "%s"\n  task_status: "in_progress"\n' "$number" "$task" >"$RALF_RUN_DIR/metadata.yaml"
    fi
    echo "$RALF_RUN_ID" >"$LOOP_PLAN/$number.run"
    { cat "$project/bin/ralf.md"; "$LOOP_START" start; } >"$RALF_RUN_DIR/prompt.md" 2>>"$LOOP_PLAN/said"
    cp "$RALF_RUN_DIR/prompt.md" "$LOOP_PLAN/$number.prompt"
    rm -f "$LOOP_PLAN/closing"
    bash "$(dirname "$0")/loop_agent.sh" "$number" "$when" <"$RALF_RUN_DIR/prompt.md" >"$RALF_RUN_DIR/claude_output.log" 2>>"$LOOP_PLAN/said"
    touch "$LOOP_PLAN/closing"
    "$door" end "$RALF_RUN_DIR/claude_output.log" 2>>"$LOOP_PLAN/said"
done

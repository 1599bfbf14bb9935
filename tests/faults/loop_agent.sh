#!/usr/bin/env bash
# The stand-in for the loop's agent: reads its prompt, writes the run's documents, promises something, or dies.
#
#   loop_agent.sh NUMBER WHEN     WHEN: a promise (COMPLETE, PARTIAL …), `nothing`, `stuck`, or `PLACE-agent`, `PLACE-group`:
#                                 killed at one of the places below, alone or with the whole loop
#
# What was decided and is on the disk is acknowledged in $LOOP_PLAN/acknowledged.
set -u
number=$1 when=$2
case $when in *-*) promise=PARTIAL ;; *) promise=$when ;; esac
cat >/dev/null

here() {
    case $when in
        "$1-agent") kill -9 $$ ;;
        "$1-group") kill -9 0 ;;
    esac
}

here begin
if [ "$when" = nothing ]; then
    exit 0 # it ends with status 0, and without a word
fi
if [ "$when" = stuck ]; then
    printf '# THOUGHTS\n\nThe gauge of harbour %s still does not answer; I tried the same call again.\n' "$number" >"$RALF_RUN_DIR/THOUGHTS.md"
    printf '# RESULTS\n\n**Status:** RETRY\n\nThe harbour gauge did not answer in run %s.\n' "$number" >"$RALF_RUN_DIR/RESULTS.md"
    echo "<promise>RETRY</promise>"
    exit 0
fi
printf '# THOUGHTS\n\nI read the tide table of harbour-%s first, for the columns differ there.\n' "$number" >"$RALF_RUN_DIR/THOUGHTS.md"
here thoughts
printf '# DECISIONS\n\n## D-1: Keep the old column of harbour-%s\n\n**Decision:** Keep the old column of harbour-%s beside the new one\n\n**Rationale:** its readers of pier-%s cannot change before the season\n\n**Reversibility:** HIGH\n' "$number" "$number" "$number" >"$RALF_RUN_DIR/DECISIONS.md"
sync -d "$RALF_RUN_DIR/DECISIONS.md" 2>/dev/null
echo "harbour-$number" >>"$LOOP_PLAN/acknowledged"
here decisions
printf '\n## D-2: Read pier-%s twi' "$number" >>"$RALF_RUN_DIR/DECISIONS.md"
here torn
printf 'ce\n\n**Decision:** Read the gauge of pier-%s twice\n\n**Rationale:** the first answer of quay-%s is stale\n' "$number" "$number" >>"$RALF_RUN_DIR/DECISIONS.md"
sync -d "$RALF_RUN_DIR/DECISIONS.md" 2>/dev/null
echo "gauge of pier-$number" >>"$LOOP_PLAN/acknowledged"
mkdir -p "$RALF_PROJECT_DIR/src"
echo "harbour = $number" >"$RALF_RUN_DIR/changed.txt"
printf '# RESULTS\n\n**Status:** %s\n\nThe table of harbour-%s is carried over.\n\n## Files Modified\n\n- `src/harbour_%s.py`\n' "$promise" "$number" "$number" >"$RALF_RUN_DIR/RESULTS.md"
here results
echo "harbour-$number is done."
echo "<promise>$promise</promise>"
here promised
if [ "${when%-*}" = closing ]; then # killed with the whole loop while its run is being taken in
    (
        while [ ! -e "$LOOP_PLAN/closing" ]; do sleep 0.01; done
        sleep "0.$((RANDOM % 4))"
        kill -9 0
    ) >/dev/null 2>&1 &
fi

"""The loop: fresh agents, one after another, each with a task and exactly what it needs."""

"""What an agent learns across tasks: traps, commands, preferences, facts, patterns and relationships, by evidence."""

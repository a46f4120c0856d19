"""The demo: `story` does it, `hostile` holds the run that must be refused, `told` what happened, `view` shows it."""

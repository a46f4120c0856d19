"""What every request passes before its route: an id, who asks and how often, a bounded body."""

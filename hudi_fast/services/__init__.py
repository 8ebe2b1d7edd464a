"""Table services: each plans its work as a value, then executes the plan."""

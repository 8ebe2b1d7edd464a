"""Table services: each plans its work as a value, then carries the plan out."""

"""Who calls, and what they may do: principals, keys, tokens, the table of rules, and the guard that applies it."""

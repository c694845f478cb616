# Does nothing: what a boot costs, which the times of all others include.
# packages:
true

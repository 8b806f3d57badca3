// Package spawner starts procs for MPI_Comm_spawn while a site's job runs. A spawned world is a job
// of its own: each site that has procs of it runs a node for them, in the process of the site's own
// node. The decisions about spawns are made by core/spawn.
package spawner

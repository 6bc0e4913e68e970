"""Who loads what for whom in a cluster, and whose arrivals a block waits for."""

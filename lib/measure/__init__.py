"""Numbers from hardware: times, counters, timelines, roofs, and the records they are kept in."""

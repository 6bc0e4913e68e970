"""Numbers from traces, listings and data sheets. Pure functions: nothing here draws."""

"""What `bragg doctor` looks at: each check is a function of the surroundings."""

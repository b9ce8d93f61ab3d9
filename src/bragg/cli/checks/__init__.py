"""The checks of `bragg doctor`: each is a function of the surroundings."""

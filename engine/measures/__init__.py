"""What is measured of a machine and kept (`service.measures`): the results' names, the curves through them, and the
recording of them that ships with the project."""

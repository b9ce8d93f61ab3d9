"""What the text of a kernel tells, and text for who looks into one."""

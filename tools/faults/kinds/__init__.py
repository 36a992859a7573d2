"""All kinds of faults, each as a function that plays one."""

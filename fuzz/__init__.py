"""Fuzzing: the kernel under sanitizers (kernel.cpp, driver.cpp), and the readers of files and texts (readers.py)."""

"""What ships with the project because it was measured once: exams as trace files (`exams`).

Made by `python -m engine record`, sat again by a test. The service only reads the files.
"""

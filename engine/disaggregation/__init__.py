"""Prefill and decode on machines of their own against both on each, simulated: one laptop cannot be two machines.

A discrete-event simulation (SimPy) of a queue of people, fed with what one machine was measured to take (`Costs`). The
arrangements and what they are judged by follow DistServe (Zhong et al. 2024, arXiv:2401.09670) and Splitwise (Patel et
al. 2024, arXiv:2311.18677). No torch; the same arguments give the same result.
"""

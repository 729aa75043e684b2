"""The exam room: a model sits the exam. Until somebody asks a question, a recorded run plays."""

import streamlit as st

from views import desk, lessons, place, scene
from views.words import say

run = place.here().run
if place.malformed() or (run and not desk.knows(run)):
    st.warning(say("exam_room.run_unknown"))
    run = None
scene.show(run or lessons.recording(place.lang()))

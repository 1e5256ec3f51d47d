"""What runs inside Label Studio's own process: a settings module and a middleware.

Imports neither `backend` nor `model`.

`control_arm`, `choice` and `options` know no Django and are tested alone; `middleware` and `polyvox_settings` need
Label Studio's environment. Start Label Studio with

    DJANGO_SETTINGS_MODULE=labelstudio.polyvox_settings PYTHONPATH=<folder above labelstudio> label-studio start
"""

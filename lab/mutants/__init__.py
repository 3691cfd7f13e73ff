"""Bugs that are put into the code on purpose, one at a time.

A test suite that stays green with one of them proves too little.
"""

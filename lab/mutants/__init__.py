"""Bugs put into the code on purpose, one at a time: a suite that stays green with one of them proves too little."""

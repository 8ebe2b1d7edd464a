"""Schemas: conversion, evolution and history."""

package admin

// Document is the OpenAPI document.
var Document = document

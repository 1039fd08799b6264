package module

// Face is New, until its users follow.
var Face = New

package ration

import "net/http"

func (t *Transport) tell(req *http.Request, f *Feedback, grant Grant) {}

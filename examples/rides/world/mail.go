package world

import "net/http"

// mail is a mail that was sent. GET lists the fields.
type mail struct {
	JobID  string `json:"job_id"`
	RideID string `json:"ride_id"`
	Calls  int    `json:"calls"`
}

// mailRequest is the body of a request to send a mail.
type mailRequest struct {
	JobID   string `json:"job_id"`
	RideID  string `json:"ride_id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

func (w *World) postMail(rw http.ResponseWriter, r *http.Request) {
	var req mailRequest
	if !decode(rw, r, &req) {
		return
	}
	if req.JobID == "" || req.To == "" {
		refuse(rw, http.StatusBadRequest, "invalid_request_error", "", "job_id and to are required")
		return
	}
	how := w.send(req)
	how.hold(r.Context())
	if how.kind == Error {
		refuse(rw, http.StatusServiceUnavailable, "api_error", "", "mails can't be sent")
		return
	}
	answer(rw, http.StatusOK, struct {
		JobID string `json:"job_id"`
	}{req.JobID})
}

// send sends a mail, once for each job.
func (w *World) send(req mailRequest) behaviour {
	w.mu.Lock()
	defer w.mu.Unlock()
	how := w.mode.mail.take()
	if how.kind == Error {
		return how
	}
	for _, m := range w.mails {
		if m.JobID == req.JobID {
			m.Calls++
			return how
		}
	}
	w.mails = append(w.mails, &mail{JobID: req.JobID, RideID: req.RideID, Calls: 1})
	return how
}

package rotation

import (
	"crypto/subtle"
	"net/http"
)

// Route calls the handler of a path below any secret path of the moment; handlers are by path, "/enforce". One answer for
// all else, so that nobody learns a path by trying. Once the certificate has expired nothing is answered and the connection
// is closed: API servers keep connections for long, and would not look at the certificate again.
func (k *Keeper) Route(handlers map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving := k.Current()
		if k.settings.Now().After(serving.Leaf.Leaf.NotAfter) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the serving certificate has expired", http.StatusServiceUnavailable)
			return
		}
		path := r.URL.Path
		for _, g := range serving.Installation.Generations() {
			length := len(g.PathPrefix)
			if len(path) < length || subtle.ConstantTimeCompare([]byte(path[:length]), []byte(g.PathPrefix)) != 1 {
				continue
			}
			if handler := handlers[path[length:]]; handler != nil {
				handler.ServeHTTP(w, r)
				return
			}
		}
		http.NotFound(w, r)
	})
}

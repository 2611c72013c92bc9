package scope_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/scope"
)

func detector(t testing.TB, extensions ...scope.Extension) *scope.Detector {
	t.Helper()
	lexicons, err := scope.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if lexicons[0], err = scope.Extend(lexicons[0], extensions...); err != nil {
		t.Fatal(err)
	}
	d, err := scope.Compile(lexicons...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func kinds(findings []scope.Finding) []scope.Kind {
	var all []scope.Kind
	for _, f := range findings {
		all = append(all, f.Kind)
	}
	return all
}

func lines(block string) []string { return strings.Split(strings.TrimSpace(block), "\n") }

// Proves S-1: limiting phrases in English and Polish turn strict scope on, in their inflected forms, with or without "only".
func TestPhrasesThatLimitTheWorkAreLimits(t *testing.T) {
	d := detector(t)
	for _, text := range lines(limiting) {
		if !slices.Contains(kinds(d.Detect(text)), scope.KindLimit) {
			t.Errorf("%q is no limit: %+v", text, d.Detect(text))
		}
	}
}

// Proves S-1: uses that do not limit the agent's work change nothing.
func TestPhrasesThatDoNotLimitTheWorkAreNoLimits(t *testing.T) {
	d := detector(t)
	for _, text := range lines(notLimiting) {
		for _, f := range d.Detect(text) {
			if f.Kind == scope.KindLimit || f.Kind == scope.KindBroaden {
				t.Errorf("%q is a %s by %q", text, f.Kind, f.Phrase)
			}
		}
	}
}

// Proves S-1: every form of the limiting words is seen, whatever it does where it stands.
func TestEveryLimitingWordIsReported(t *testing.T) {
	d := detector(t)
	for _, word := range []string{
		"only", "solely", "exclusively", "merely", "just", "ONLY", "tylko", "jedynie", "wyłącznie", "wylacznie", "WYŁĄCZNIE", "Tylko",
	} {
		for _, text := range []string{"list " + word + " the pods", word + " restart web", "the pods (" + word + " those)", "a " + word + "-mode", "**" + word + "** web", "_" + word + "_ web"} {
			if len(d.Detect(text)) != 1 {
				t.Errorf("%q has the findings %+v, want one", text, d.Detect(text))
			}
		}
	}
}

func TestContentAndIdiomsAreToldApart(t *testing.T) {
	d := detector(t)
	for text, want := range map[string]scope.Kind{
		"allow egress only to pods in ns2":        scope.KindContent,
		"list only the Warning events":            scope.KindContent,
		"deploy it only if the tests pass":        scope.KindIdiom,
		"only deploy it if the tests pass":        scope.KindContent,
		"why did you change only web?":            scope.KindContent,
		"a read-only role":                        scope.KindIdiom,
		"not only web":                            scope.KindIdiom,
		"nothing else works":                      scope.KindIdiom,
		"why did you leave everything else?":      scope.KindContent,
		"wdróż, jeśli tylko testy przejdą":        scope.KindIdiom,
		"rola z dostępem tylko do podów":          scope.KindContent,
		"should I broaden the scope?":             scope.KindContent,
		"perhaps you can change anything":         scope.KindContent,
		"you can change anything if tests pass":   scope.KindContent,
		"I do not think you can change anything":  scope.KindContent,
		"she said you can change anything":        scope.KindContent,
		"expand the scope of the role":            scope.KindIdiom,
		"broaden the scope.":                      scope.KindBroaden,
		"you can now change anything else":        scope.KindBroaden,
		"lift the strict scope":                   scope.KindBroaden,
		"Możesz teraz zmieniać resztę":            scope.KindBroaden,
		"nie jesteś już ograniczony do web":       scope.KindBroaden,
		"propozycje są znowu mile widziane":       scope.KindBroaden,
		"feel free to suggest other improvements": scope.KindBroaden,
	} {
		if got := kinds(d.Detect(text)); !slices.Contains(got, want) || slices.Contains(got, scope.KindLimit) {
			t.Errorf("%q has %v, want %s and no limit", text, got, want)
		}
	}
}

func TestADeniedBroadeningLimitsInstead(t *testing.T) {
	d := detector(t)
	for _, text := range []string{"don't lift the strict scope", "do not broaden the scope", "nie rozszerzaj zakresu", "perhaps strict scope is over"} {
		got := kinds(d.Detect(text))
		if !slices.Contains(got, scope.KindLimit) || slices.Contains(got, scope.KindBroaden) {
			t.Errorf("%q has %v, want a limit and no broadening", text, got)
		}
	}
}

// Proves S-4: the finding has the lexicon's phrase, its place in the bytes of the text, and the lexicon's version.
func TestAFindingNamesPhrasePlaceAndLexicon(t *testing.T) {
	d := detector(t)
	for _, c := range []struct {
		text string
		want scope.Finding
		at   string
	}{
		{"Zażółć. Zmień TYLKO obraz", scope.Finding{Kind: scope.KindLimit, Phrase: "tylko", Lexicon: "pl-v1"}, "TYLKO"},
		{"restart web, nic wiecej", scope.Finding{Kind: scope.KindLimit, Phrase: "nic więcej", Lexicon: "pl-v1"}, "nic wiecej"},
		{"Don’t touch the rest!", scope.Finding{Kind: scope.KindLimit, Phrase: "don't touch the rest", Lexicon: "en-v1"}, "Don’t touch the rest"},
		{"hands off my secret everything else", scope.Finding{Kind: scope.KindLimit, Phrase: "hands off … else", Lexicon: "en-v1"}, "hands off my secret everything else"},
		{"ｏｎｌｙ restart web", scope.Finding{Kind: scope.KindLimit, Phrase: "only", Lexicon: "en-v1"}, "ｏｎｌｙ"},
		{"𝐨𝐧𝐥𝐲 restart web", scope.Finding{Kind: scope.KindLimit, Phrase: "only", Lexicon: "en-v1"}, "𝐨𝐧𝐥𝐲"},
		{"o\u200bn\u00adly restart web", scope.Finding{Kind: scope.KindLimit, Phrase: "only", Lexicon: "en-v1"}, "o\u200bn\u00adly"},
		{"wył\u0061\u0328cznie web", scope.Finding{Kind: scope.KindLimit, Phrase: "wyłącznie", Lexicon: "pl-v1"}, "wył\u0061\u0328cznie"},
		{"оnly restart web", scope.Finding{Kind: scope.KindLimit, Phrase: scope.MixedScriptPhrase, Lexicon: scope.MixedScriptLexicon}, "оnly"},
		{"zrestartuj tylкo web", scope.Finding{Kind: scope.KindLimit, Phrase: scope.MixedScriptPhrase, Lexicon: scope.MixedScriptLexicon}, "tylкo"},
	} {
		c.want.Start = strings.Index(c.text, c.at)
		c.want.End = c.want.Start + len(c.at)
		if diff := cmp.Diff([]scope.Finding{c.want}, d.Detect(c.text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

// Proves S-1: code, quotes, URLs and identifiers are not the user's own words.
func TestHiddenTextHasNoFindings(t *testing.T) {
	d := detector(t)
	for _, text := range []string{
		"`only`", "``only ` tylko``", "```\nonly this\n```", "~~~yaml\nnothing else\n~~~", "  ```\n  only\n  ```", "```\nonly", "````\n```\nonly\n````",
		"> only this\n> nothing else", `rename it to "only this"`, "'only this'", "“only this”", "„tylko to”", "«nothing else»", "‘only this’", "‚tylko‘",
		"https://only.example/nothing/else", "/etc/only", "./only", "~/only", "../only", "C:\\only", "only.go", "--only", "-only", "only_this", "this_only_that",
		"key=only", "@only", "$only", "<only>", "only::just", "nothing-else", "do-not-touch-the-rest", "app.kubernetes.io/only", "list[only]", "a|only", "{only}x{", "50μs",
		"`eth0`", ".only", "\"only\nthis\"", "user@only.example", "#a#only", "web&only", "x^only", "it costs 10% of only%x",
	} {
		for _, f := range d.Detect(text) {
			if f.Kind != scope.KindIdiom {
				t.Errorf("%q has the finding %+v, want none", text, f)
			}
		}
	}
}

func TestMarksThatHideNothing(t *testing.T) {
	d := detector(t)
	for _, text := range []string{
		"`only restart web", "\"only restart web", "'only restart web", "don't stop, only restart web's pods and the users' jobs", "```go\n```\nonly restart web",
		"a \" b\n\nonly restart web, \"x", "only *restart* web", "only restart `web`", "only `web`", "``` a ` b\nOnly restart web", "Fix it.Only it", "Note: only restart web", "– only restart web",
		"* only restart web", "list pods\nOnly restart web", "list pods\n- only restart web", "list pods\r\n\r\nonly restart web", "only restart\r\nweb", "nothing\nelse", "one\ntwo, nothing\r\nelse",
		"scale web (and only web)", "\xffonly restart web", "\" only restart web\"", "5\" disk, only \" restart it", "...only restart web", "Is it ok? Only restart web.",
		"only restart web --", "- - only restart web", "~~ only restart web ~~", "only\u2028restart web",
	} {
		if !slices.Contains(kinds(d.Detect(text)), scope.KindLimit) {
			t.Errorf("%q is no limit: %+v", text, d.Detect(text))
		}
	}
}

func TestWordsOfScriptsThatMixAsAMatterOfCourseAreNoHits(t *testing.T) {
	d := detector(t)
	for _, text := range []string{"podを再起動", "重启web容器", "5μs 10kΩ", "перезапусти веб", "α-test", "naïve café", "Ωμέγα"} {
		if got := d.Detect(text); len(got) != 0 {
			t.Errorf("%q has %+v, want none", text, got)
		}
	}
}

const limiting = `
Only restart the web Deployment.
Only the web Deployment. Nothing else.
Restart only web.
Restart the web pod only.
web only
Change ONLY the image!
Change **only** the image
Change _only_ the image
Please only restart web
You must only touch ns1.
You should only edit the ConfigMap.
Could you only restart web?
I only want the image changed
Compress only the text files
In staging restart only web
Then fix only the probe
Scale web, and only web, to 3.
Changes should only be made in ns1
Make sure that only the web deployment is changed
Only web may be restarted
Please change the replica count only
All you should do is restart web
Fix it. And only it.
Enforce only ` + "`web`" + `
Solely update the config map
Exclusively the staging namespace
merely rename the label
Just restart the pod
just bump the tag and that's it
can you just restart the pod?
Just the image tag, please.
you can just restart it
In staging you should just restart it
Change just the image
I just want you to restart it
Fix the typo, nothing more, nothing less.
no more, no less
Fix it and do nothing else.
Nothing beyond that.
Modify nothing other than the image
nothing else should be changed
nothing else needs to change
Make no other changes.
Please make no further modifications.
Don't touch the rest.
don’t touch the rest
do not touch anything else
Please don't mess with anything else.
Do not modify any other resources.
don't touch other namespaces
Don't do anything I didn't ask for
Don't change anything besides the replica count.
Don't go beyond what I asked
don't expand the scope
Don't suggest anything else
I don't want you to touch anything else
Hands off everything else
Without changing anything else, update the image.
Update the image without touching the other deployments
avoid any other changes
Avoid touching anything else
Fix the probe and leave everything else alone.
Leave the other deployments alone.
leave the rest as is
Keep everything else unchanged.
Everything else must stay as is.
The rest should remain unchanged.
the rest is out of scope
ignore the rest
try not to touch anything else
We must not change the rest
I'm not asking for anything else
Do not deviate from the plan
Stick to the request.
Limit yourself to the web deployment.
Restrict your changes to ns1.
Stay within scope.
No extras.
no scope creep
do exactly this
Do exactly what I asked
The only thing you should do is restart web
Tylko to.
Tylko zrestartuj web, nic więcej
Zrestartuj tylko web.
Zmień tylko obraz w deploymencie web
W przestrzeni test zmień obraz tylko w web
Zrób tylko to, o co proszę
Zmień wyłącznie obraz
Zmień jedynie obraz
Proszę wyłącznie zaktualizować obraz
Tylko i wyłącznie web
Możesz zmienić tylko obraz
zrób tylko restart poda web
Zmiany tylko w ns1
Upewnij się, że tylko web jest restartowany
zmien wylacznie obraz
Zmień obraz i nic więcej
popraw to, nic wiecej
Nic więcej nie rób
Nic poza tym
nic innego
Nie dotykaj reszty
nie rob nic wiecej
Nie rób niczego innego
Nie zmieniaj nic poza obrazem
Nie ruszaj niczego innego
Reszty nie dotykaj
Pozostałych plików nie ruszaj
Nie zmieniaj innych zasobów
Nie dodawaj nic od siebie
Niczego więcej nie zmieniaj
Poza tym nic nie zmieniaj
Resztę zostaw w spokoju
reszte zostaw
Zostaw wszystko inne bez zmian
Reszta ma zostać bez zmian
Reszta bez zmian
Zignoruj resztę
Zaktualizuj obraz bez innych zmian
bez żadnych innych zmian
Bez ruszania reszty
Żadnych innych zmian.
Innych rzeczy nie zmieniaj.
Bez zmieniania czegokolwiek innego
Ogranicz się do web
Ogranicz zmiany do ns1
Trzymaj się zakresu
Nie wychodź poza zakres
Nie rozszerzaj zakresu
Podbij tag i tyle
Podbij tag i to wszystko
Zrób dokładnie to, o co proszę
ani mniej, ani więcej
Nie proponuj innych zmian
Jedyne, co masz zrobić, to restart
`

const notLimiting = `
List only the pods in ns1
Using a field selector, list only the namespace ns-beta
Get the names only
Create a NetworkPolicy that allows egress only to pods in ns2
Create a NetworkPolicy allowing only DNS
Create a role that can only read pods
Grant read-only access to the bucket
Expose the service only inside the cluster
Allow only port 443
Only allow traffic from ns2
Only pods labelled app=web should be able to reach the database
Make sure only pods in ns2 can connect
Deploy nginx with only two replicas
Scale down to only 1 replica
Schedule it only on linux nodes
Pods only run on linux nodes
The job should run only once a day
Only root can use this
Only if the tests pass, deploy
Deploy only if the tests pass
Only restart it if it fails
If you only see one pod, tell me
If and only if it fails, restart it
Not only web but also api
It's not just the image that is wrong
There are only three replicas
I only see one pod
you only need one
We only have one cluster
it only fails at night
The only pod in the namespace is web
What is the only deployment that fails?
Just in case, take a backup
I just deployed a new version
The pod just crashed
It just doesn't work
I was just there
it is just
Just now the node went down
Just a quick question: which pods fail?
We just restarted it
just deployed v2
just allow it
Why does only web fail?
Is it just me or is the API slow?
web only?
Can't we just restart it?
Instead of just restarting, find the cause
If nothing else works, restart it
Nothing else is running on that node
There is nothing else in the namespace
Is there anything else that fails?
Fix the rest of the manifests too
Restart the rest of the pods
Make the volume read only
Create a namespace for testing only
Add the label only-dev to web
Scale web to 3 (only linux nodes)
traffic only to the pods
Fix it using only kubectl
the only
The update did not change anything else
it does not work outside the cluster
the API does not need more memory
not more than three replicas
there are no other changes
no further steps are needed
make exactly the same change in staging
the pods stick to the same node
the others are unchanged
Nodes in Berlin only of late fail
in Berlin fail only ` + "`web`" + ` and that is bad
wyświetl tylko pody z ns1
pokaż tylko błędy
utwórz rolę, która może tylko czytać pody
udostępnij usługę z ruchem tylko do ns2
zezwól tylko na port 443
tylko jeśli testy przejdą, wdróż
wdróż tylko wtedy, gdy testy przejdą
wdróż, jeśli tylko testy przejdą
jak tylko skończysz, daj znać
nie tylko web, ale też api
mamy tylko jeden klaster
są tylko trzy repliki
widzę tylko jeden pod
wolumin tylko do odczytu
dlaczego działa tylko web?
nic więcej nie wiem
nic innego nie działa
nie ma nic więcej w tej przestrzeni
to jedyny pod w tej przestrzeni
wyłącz usługę
sprawdź resztę logów
zrestartuj resztę podów
Debian (tylko pakiety debugowalne)
wymaga tylko środowiska wykonawczego
zamiast tylko restartować, znajdź przyczynę
uruchom z tylko jedną repliką
rola ma mieć dostęp tylko do podów
Rozszerz zakres uprawnień roli
tylko że to nie działa
nie ma żadnych innych zmian
`

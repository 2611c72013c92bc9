package tool

// The lexicons hold English words in their base form, because the names of tools are English. A word that is missing
// makes a tool less understood, and so ASK.
var (
	// looking are verbs of reading, wherever they stand in a name.
	looking = setOf("get list read describe find fetch retrieve search show view lookup query inspect browse")
	// lookingFirst are words that are verbs of reading only where a name begins with them.
	lookingFirst = setOf("check count explain preview summarize compare estimate grep glob ls stat whoami")
	// lookingLast are verbs of reading that end a name ("issue_read") and are no nouns there.
	lookingLast = setOf("get list read")
	// lookingOnly are verbs of reading that are no nouns anywhere in a name.
	lookingOnly = setOf("get read describe find fetch retrieve inspect browse")
	// giving are verbs of descriptions of tools that read.
	giving = setOf("return give provide display look enumerate obtain output print")
	// lookedAt are nouns that end the name of a tool that reads them ("pods_log").
	lookedAt = setOf(`log top info stat status summary details history metric health version usage tree context contexts
		analysis diagnosis diagnostic graph inventory overview topology troubleshoot`)

	// changing are verbs that never are part of what is read.
	changing = setOf(`abort accept activate add adjust allocate append apply approve archive assign attach ban bind boot bump cancel
		clear clone close configure connect convert copy create deactivate deallocate decline decrease decrypt delete
		deny deploy deprovision destroy detach disable discard disconnect dismiss dispatch download drain drop
		edit eject emit enable encrypt enqueue enroll erase evict exec execute extend fill finalize fix flush forget
		forward freeze generate grant hibernate ingest init initialize initiate inject insert install invoke join kick
		kill launch login logout make manage mark merge migrate modify move mutate mute notify onboard optimize
		overwrite pause pay perform persist poke prepare prioritize promote provision prune publish purchase purge push
		put reactivate reboot rebuild recreate redeem refill refuel refund regenerate register reject relocate remediate
		remove rename renew reopen repair replace replay reply reprocess reschedule reserve reset resize resolve restart
		restore resume retry revert revoke rollback rotate save scale send set share shut shutdown sign signin signup
		snooze spend submit subscribe suspend swap switch sync synchronize tear terminate toggle transact trigger
		truncate tweak unarchive unassign unban unbind unblock undeploy undo unfollow unfreeze uninstall unlink unlock
		unmute unpin unpublish unregister unresolve unset unshare unstar unsubscribe untag update upgrade upload upsert
		wipe withdraw write`)
	// either are words that change something as a verb and are read as a noun ("order", "list_orders").
	either = setOf(`advance alert amend annotate answer backup bill block book broadcast build buy call change charge checkout claim
		comment commit credit debit deposit dispute donate duplicate email estimate evaluate exchange export file flag follow fork
		format hire hold import invest invite issue label leave like link load lock log mail message open order park
		patch payment pin pledge post process pull quote rate react recharge record redirect release rent report repost
		request review ride run scan schedule seed sell setup ship star start stop store stream tag task test text tip
		trade train transfer tweet use vote watch wire`)

	prepositions = setOf("of on for in to from about with by at per")

	losing     = setOf("delete remove drop destroy purge wipe erase truncate uninstall kill terminate cancel close revoke reset clear overwrite prune discard format evict drain unregister deprovision shutdown")
	making     = setOf("create add new make insert open book order send post upload publish submit register install clone fork")
	running    = setOf("run exec execute call invoke connect ssh shell")
	sending    = setOf("send email mail message sms notify post reply forward share invite tweet comment broadcast announce submit text dm")
	publishing = setOf("publish post upload share tweet broadcast announce push export release deploy")
	paying     = setOf("pay payment buy purchase order book charge refund refuel transfer withdraw deposit invest trade sell donate bill checkout ship tip fund credit debit subscribe")
	opening    = setOf("grant allow unlock disable permission role policy firewall access share unblock invite member collaborator privilege visibility lock block")
	many       = setOf("all bulk batch mass everything everyone")

	// secrets are nouns of what must not be read or carried without a question.
	secrets = setOf("secret password passwd passphrase credential kubeconfig apikey keychain keystore cvv totp otp")
	// keys make a secret together with the word "key".
	keys = setOf("api private access secret ssh signing encryption deploy master")
	// labels tell things apart and open nothing; holding are words of what a file has inside.
	labels  = setOf("name id url address label count")
	holding = setOf("key data content value certificate config configuration setting")
	// pages are words that make a token a bookmark and no secret.
	pages = setOf("page next continue continuation sync cursor start max min total count limit pagination")
)

import type { MailTextSource } from './en.ts'

/** The mails in German. */
export const de: MailTextSource = {
  layout: {
    fallback: 'Wenn die Schaltfläche nicht funktioniert, öffnen Sie diesen Link:',
    tokensEnded: 'Persönliche Zugriffstokens, die nicht mehr funktionieren: {tokens}.',
    help: 'Hilfe',
    terms: 'Nutzungsbedingungen',
    privacy: 'Datenschutz'
  },
  reset: {
    subject: '{service}: neues Passwort festlegen',
    heading: 'Neues Passwort festlegen',
    text: 'Jemand hat einen Link angefordert, um ein neues Passwort für Ihr Konto bei {service} festzulegen.',
    button: 'Neues Passwort festlegen',
    note: 'Dieser Link funktioniert einmal und ist eine Stunde lang gültig. Wenn Sie ihn nicht angefordert haben, ignorieren Sie diese E-Mail: Ihr Passwort bleibt unverändert.'
  },
  recovery: {
    subject: '{service}: neues Passwort festlegen',
    heading: 'Neues Passwort festlegen',
    text: 'Die Administration von {service} bittet Sie, ein neues Passwort für Ihr Konto festzulegen.',
    button: 'Neues Passwort festlegen',
    note: 'Dieser Link funktioniert einmal und ist eine Stunde lang gültig.'
  },
  exists: {
    subject: '{service}: Sie haben bereits ein Konto',
    heading: 'Sie haben bereits ein Konto',
    text: 'Sie haben bereits ein Konto bei {service}. Jemand hat gerade versucht, sich mit Ihrer E-Mail-Adresse zu registrieren.\n\nPasswort vergessen? Legen Sie ein neues fest.',
    button: 'Neues Passwort festlegen',
    note: 'Dieser Link funktioniert einmal und ist eine Stunde lang gültig. Wenn Sie sich nicht registrieren wollten, ignorieren Sie diese E-Mail: Ihr Konto bleibt unverändert.'
  },
  'sign-up': {
    subject: '{service}: Konto erstellen',
    heading: 'Konto erstellen',
    text: 'Jemand hat sich mit dieser E-Mail-Adresse bei {service} registriert. Wählen Sie ein Passwort, um Ihr Konto zu erstellen.',
    button: 'Konto erstellen',
    note: 'Dieser Link funktioniert einmal und ist 24 Stunden lang gültig. Wenn Sie sich nicht registriert haben, ignorieren Sie diese E-Mail: Es wird kein Konto erstellt.'
  },
  verify: {
    subject: '{service}: E-Mail-Adresse bestätigen',
    heading: 'E-Mail-Adresse bestätigen',
    text: 'Bestätigen Sie, dass diese E-Mail-Adresse zu Ihrem Konto bei {service} gehört.',
    button: 'Adresse bestätigen',
    note: 'Dieser Link funktioniert einmal und ist 24 Stunden lang gültig. Wenn Sie ihn nicht angefordert haben, ignorieren Sie diese E-Mail: Es ändert sich nichts.'
  },
  change: {
    subject: '{service}: neue E-Mail-Adresse bestätigen',
    heading: 'Neue E-Mail-Adresse bestätigen',
    text: 'Für das Konto {account} bei {service} soll {address} die neue E-Mail-Adresse werden. Wenn das Ihr Konto ist, bestätigen Sie die Adresse. Dazu müssen Sie bei diesem Konto angemeldet sein.',
    button: 'Adresse bestätigen',
    note: 'Dieser Link funktioniert einmal und ist eine Stunde lang gültig. Wenn {account} nicht Ihr Konto ist, ignorieren Sie diese E-Mail: Jemand hat Ihre Adresse eingegeben, und es ändert sich nichts.'
  },
  suggest: {
    subject: '{service}: E-Mail-Adresse hinzufügen',
    heading: 'E-Mail-Adresse hinzufügen',
    text: 'Sie haben sich bei {service} mit {upstream} angemeldet, und Ihr neues Konto {account} hat noch keine E-Mail-Adresse. Möchten Sie {address} hinzufügen? Dazu müssen Sie bei diesem Konto angemeldet sein.',
    button: 'Adresse hinzufügen',
    note: 'Dieser Link funktioniert einmal und ist eine Stunde lang gültig. Wenn Sie dieses Konto nicht erstellt haben, ignorieren Sie diese E-Mail: Ihre Adresse wird nicht hinzugefügt.'
  },
  invite: {
    subject: '{service}: Sie sind eingeladen',
    heading: 'Sie sind eingeladen',
    text: 'Sie sind zu {service} eingeladen. Wählen Sie ein Passwort, um Ihr Konto zu nutzen.',
    button: 'Einladung annehmen',
    note: 'Dieser Link funktioniert einmal und ist 7 Tage lang gültig.'
  },
  'address-changed': {
    subject: '{service}: Ihre E-Mail-Adresse wurde geändert',
    heading: 'Ihre E-Mail-Adresse wurde geändert',
    text: 'Die E-Mail-Adresse Ihres Kontos bei {service} wurde geändert. E-Mails zu Ihrem Konto gehen jetzt an ein anderes Postfach.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'address-taken-back': {
    subject: '{service}: eine Änderung der E-Mail-Adresse wurde rückgängig gemacht',
    heading: 'Eine Änderung der E-Mail-Adresse wurde rückgängig gemacht',
    text: 'Diese E-Mail-Adresse gehört nicht mehr zu einem Konto bei {service}: Die Änderung wurde von der vorherigen Adresse aus rückgängig gemacht. Alle Browser und Apps wurden abgemeldet, und das Passwort ist nicht mehr gültig.\n\nWenn Sie die Adresse geändert haben, [wenden Sie sich an den Support von {service}].'
  },
  'address-given-up': {
    subject: '{service}: Ihre E-Mail-Adresse wurde ersetzt',
    heading: 'Ihre E-Mail-Adresse wurde ersetzt',
    text: 'Die Administration von {service} hat die E-Mail-Adresse Ihres Kontos ersetzt. E-Mails zu Ihrem Konto gehen nicht mehr an dieses Postfach.\n\nWenn Sie das nicht erwartet haben, [wenden Sie sich an den Support von {service}].'
  },
  'address-verified': {
    subject: '{service}: Ihre E-Mail-Adresse ist bestätigt',
    heading: 'Ihre E-Mail-Adresse ist bestätigt',
    text: '{service} hat bestätigt, dass diese E-Mail-Adresse zu Ihrem Konto gehört. Sie müssen nichts tun.\n\nWenn Sie dort kein Konto haben, [wenden Sie sich an den Support von {service}].'
  },
  'password-changed': {
    subject: '{service}: Ihr Passwort wurde geändert',
    heading: 'Ihr Passwort wurde geändert',
    text: 'Das Passwort Ihres Kontos bei {service} wurde geändert, und alle anderen Browser und Apps wurden abgemeldet.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, legen Sie jetzt ein neues Passwort fest.',
    button: 'Neues Passwort festlegen',
    note: 'Wenn das nicht hilft, [wenden Sie sich an den Support von {service}].'
  },
  'password-removed': {
    subject: '{service}: Ihr Passwort wurde entfernt',
    heading: 'Ihr Passwort wurde entfernt',
    text: 'Das Passwort Ihres Kontos bei {service} wurde entfernt, und alle anderen Browser und Apps wurden abgemeldet. Sie melden sich jetzt mit Ihren anderen Anmeldemethoden an.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, und [wenden Sie sich an den Support von {service}].'
  },
  'first-factor-added': {
    subject: '{service}: Zwei-Faktor-Authentifizierung ist aktiv',
    heading: 'Zwei-Faktor-Authentifizierung ist aktiv',
    text: 'Zu Ihrem Konto bei {service} wurde eine Authenticator-App hinzugefügt. Zum Anmelden benötigen Sie ab jetzt auch einen Code aus dieser App.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'factor-added': {
    subject: '{service}: eine Authenticator-App wurde hinzugefügt',
    heading: 'Eine Authenticator-App wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde eine Authenticator-App hinzugefügt.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie ein neues Passwort fest, entfernen Sie die App auf Ihrer Kontoseite, und [wenden Sie sich an den Support von {service}].'
  },
  'first-passkey-added': {
    subject: '{service}: ein Passkey wurde hinzugefügt',
    heading: 'Ein Passkey wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde ein Passkey hinzugefügt. Damit kann man sich ohne Passwort anmelden.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'passkey-added': {
    subject: '{service}: ein Passkey wurde hinzugefügt',
    heading: 'Ein Passkey wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde ein Passkey hinzugefügt.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie ein neues Passwort fest, entfernen Sie den Passkey auf Ihrer Kontoseite, und [wenden Sie sich an den Support von {service}].'
  },
  'passkey-removed': {
    subject: '{service}: ein Passkey wurde entfernt',
    heading: 'Ein Passkey wurde entfernt',
    text: 'Von Ihrem Konto bei {service} wurde ein Passkey entfernt.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, und [wenden Sie sich an den Support von {service}].'
  },
  'factor-removed': {
    subject: '{service}: eine Authenticator-App wurde entfernt',
    heading: 'Eine Authenticator-App wurde entfernt',
    text: 'Von Ihrem Konto bei {service} wurde eine Authenticator-App entfernt.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, und [wenden Sie sich an den Support von {service}].'
  },
  'identity-linked': {
    subject: '{service}: {upstream} wurde mit Ihrem Konto verbunden',
    heading: '{upstream} wurde mit Ihrem Konto verbunden',
    text: 'Ein Konto bei {upstream} wurde mit Ihrem Konto bei {service} verbunden. Damit kann man sich bei Ihrem Konto anmelden.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'identity-joined': {
    subject: '{service}: Sie melden sich jetzt mit {upstream} an',
    heading: 'Sie melden sich jetzt mit {upstream} an',
    text: 'Bei Ihrem Konto bei {service} melden Sie sich jetzt mit {upstream} an. Ihr Passwort und Ihre anderen Anmeldemethoden wurden entfernt, zugesandte Links sind nicht mehr gültig, und alle Browser und Apps wurden abgemeldet.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'identity-rejoined': {
    subject: '{service}: Ihr Konto bei {upstream} wurde ersetzt',
    heading: 'Ihr Konto bei {upstream} wurde ersetzt',
    text: 'Alle Konten bei {upstream} werden ersetzt. Ihr neues Konto wurde mit Ihrem Konto bei {service} verbunden, das alte wurde getrennt. Alle Browser und Apps wurden abgemeldet.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'identity-replaced': {
    subject: '{service}: Ihr Konto bei {upstream} wurde ersetzt',
    heading: 'Ihr Konto bei {upstream} wurde ersetzt',
    text: 'Ein Administrator von {service} hat Ihr neues Konto bei {upstream} für die Anmeldung zugelassen und das alte getrennt. Alle Browser und Apps wurden abgemeldet.\n\nZeit: {time}.\n\nMelden Sie sich mit {upstream} an, um fortzufahren. Wenn Sie das nicht erwartet haben, [wenden Sie sich an den Support von {service}].',
    button: 'Anmelden'
  },
  'identity-unlinked': {
    subject: '{service}: eine Anmeldemethode wurde entfernt',
    heading: 'Eine Anmeldemethode wurde entfernt',
    text: 'Ein Konto bei einem anderen Anbieter wurde von Ihrem Konto bei {service} getrennt. Damit kann man sich nicht mehr anmelden.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, und [wenden Sie sich an den Support von {service}].'
  },
  only: {
    subject: '{service}: mit {upstream} anmelden',
    heading: 'Mit {upstream} anmelden',
    text: 'Jemand hat einen Link angefordert, um ein neues Passwort für Ihr Konto bei {service} festzulegen. Ihr Konto hat kein Passwort: Sie melden sich mit {upstream} an.\n\nWenn Sie sich dort nicht anmelden können, wenden Sie sich an {upstream}.',
    button: 'Anmelden',
    note: 'Wenn Sie das nicht angefordert haben, ignorieren Sie diese E-Mail.'
  },
  'recovery-used': {
    subject: '{service}: ein Backup-Code wurde verwendet',
    heading: 'Ein Backup-Code wurde verwendet',
    text: 'Ein Backup-Code Ihres Kontos bei {service} wurde verwendet. Verbleibende Codes: {count}.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, und erstellen Sie auf Ihrer Kontoseite neue Backup-Codes.'
  },
  'codes-renewed': {
    subject: '{service}: neue Backup-Codes',
    heading: 'Neue Backup-Codes',
    text: 'Für Ihr Konto bei {service} wurden neue Backup-Codes erstellt. Ihre alten Codes sind nicht mehr gültig.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, und [wenden Sie sich an den Support von {service}].'
  },
  'factor-closed': {
    subject: '{service}: Ihre Authenticator-App ist gesperrt',
    heading: 'Ihre Authenticator-App ist gesperrt',
    text: 'Jemand, der Ihr Passwort kennt, hat bei Ihrem Konto bei {service} zu oft einen falschen Code eingegeben. Ihre Authenticator-App ist deshalb gesperrt. Um sie zu entsperren, melden Sie sich mit einem Backup-Code oder einem Passkey an, oder [wenden Sie sich an den Support von {service}].\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest.'
  },
  'codes-closed': {
    subject: '{service}: Ihre Backup-Codes wurden gesperrt',
    heading: 'Ihre Backup-Codes wurden gesperrt',
    text: 'Jemand, der Ihr Passwort bei {service} kennt, hat zu oft hintereinander einen falschen Backup-Code eingegeben. Ihre Backup-Codes sind gesperrt. Um sie zu entsperren, melden Sie sich mit Ihrer Authenticator-App oder einem Passkey an oder [wenden Sie sich an den Support].\n\nZeit: {time}. Von: {place}.\n\nWaren Sie das nicht, legen Sie jetzt ein neues Passwort fest.'
  },
  unlocked: {
    subject: '{service}: Ihr Konto wurde entsperrt',
    heading: 'Ihr Konto wurde entsperrt',
    text: 'Das Support-Team von {service} hat Ihr Konto nach zu vielen falschen Passwörtern oder Codes entsperrt. Sie können sich wieder anmelden.\n\nZeit: {time}.\n\nWenn Sie nicht darum gebeten haben, legen Sie jetzt ein neues Passwort fest, und [wenden Sie sich an den Support von {service}].'
  },
  'factor-reset': {
    subject: '{service}: Ihre Zwei-Faktor-Authentifizierung wurde zurückgesetzt',
    heading: 'Ihre Zwei-Faktor-Authentifizierung wurde zurückgesetzt',
    text: 'Die Administration von {service} hat Ihre Methoden für die Zwei-Faktor-Authentifizierung und Ihre Backup-Codes entfernt und alle Browser und Apps abgemeldet.\n\nZeit: {time}.\n\nWenn Sie das nicht erwartet haben, [wenden Sie sich an den Support von {service}].'
  },
  'factor-reset-link': {
    subject: '{service}: Zwei-Faktor-Authentifizierung einrichten',
    heading: 'Zwei-Faktor-Authentifizierung einrichten',
    text: 'Die Administration von {service} hat Ihre Methoden für die Zwei-Faktor-Authentifizierung und Ihre Backup-Codes entfernt und alle Browser und Apps abgemeldet.\n\nZeit: {time}.\n\nIhr Konto erfordert die Zwei-Faktor-Authentifizierung. Richten Sie sie mit diesem Link, Ihrem Passwort und einer Authenticator-App erneut ein. Wenn Sie das nicht erwartet haben, [wenden Sie sich an den Support von {service}].',
    button: 'Jetzt einrichten',
    note: 'Dieser Link funktioniert einmal und ist 72 Stunden lang gültig. Geben Sie ihn an niemanden weiter.'
  },
  'password-set': {
    subject: '{service}: Ihr Konto hat jetzt ein Passwort',
    heading: 'Ihr Konto hat jetzt ein Passwort',
    text: 'Für Ihr Konto bei {service}, das bisher kein Passwort hatte, wurde eines festgelegt.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'codes-made': {
    subject: '{service}: neue Backup-Codes',
    heading: 'Neue Backup-Codes',
    text: 'Für Ihr Konto bei {service} wurden neue Backup-Codes erstellt. Ihre alten Codes sind nicht mehr gültig.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, müssen Sie nichts tun. Wenn nicht, machen Sie es rückgängig: Dadurch wird auch alles andere entfernt, was in den letzten Tagen hinzugefügt wurde, alle Browser und Apps werden abgemeldet, und Ihr Passwort wird zurückgesetzt.',
    button: 'Das war ich nicht',
    note: 'Dieser Link ist {hours} Stunden lang gültig.'
  },
  'identity-connected': {
    subject: '{service}: {upstream} wurde mit Ihrem Konto verbunden',
    heading: '{upstream} wurde mit Ihrem Konto verbunden',
    text: 'Ein Konto bei {upstream} wurde mit Ihrem Konto bei {service} verbunden. Damit kann man sich bei Ihrem Konto anmelden.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das nicht waren, legen Sie ein neues Passwort fest, trennen Sie {upstream} auf Ihrer Kontoseite, und [wenden Sie sich an den Support von {service}].'
  },
  undone: {
    subject: '{service}: die letzten Änderungen wurden rückgängig gemacht',
    heading: 'Die letzten Änderungen wurden rückgängig gemacht',
    text: 'Alles, was in den letzten Tagen zu Ihrem Konto bei {service} hinzugefügt wurde, ist entfernt. Alle Browser und Apps wurden abgemeldet, und Ihr Passwort ist nicht mehr gültig.\n\nLegen Sie ein neues Passwort fest, um wieder in Ihr Konto zu gelangen.',
    button: 'Neues Passwort festlegen',
    note: 'Dieser Link funktioniert einmal und ist eine Stunde lang gültig.'
  },
  'undone-only': {
    subject: '{service}: die letzten Änderungen wurden rückgängig gemacht',
    heading: 'Die letzten Änderungen wurden rückgängig gemacht',
    text: 'Alles, was in den letzten Tagen zu Ihrem Konto bei {service} hinzugefügt wurde, ist entfernt. Alle Browser und Apps wurden abgemeldet. Sie melden sich weiterhin mit {upstream} an.\n\nWenn Sie sich dort nicht anmelden können, [wenden Sie sich an den Support von {service}].',
    button: 'Anmelden'
  },
  'undone-enrol': {
    subject: '{service}: Zwei-Faktor-Authentifizierung einrichten',
    heading: 'Zwei-Faktor-Authentifizierung einrichten',
    text: 'Ihr Konto bei {service} erfordert die Zwei-Faktor-Authentifizierung. Die hinzugefügte Methode wurde mit den Änderungen entfernt, die Sie rückgängig gemacht haben.\n\nLegen Sie zuerst mit dem Link in unserer anderen E-Mail ein neues Passwort fest. Richten Sie dann mit diesem Link die Zwei-Faktor-Authentifizierung erneut ein.',
    button: 'Jetzt einrichten',
    note: 'Dieser Link funktioniert einmal und ist 72 Stunden lang gültig. Geben Sie ihn an niemanden weiter.'
  },
  'secret-expiring': {
    subject: '{service}: ein Secret Ihrer App läuft bald ab',
    heading: 'Ein Secret Ihrer App läuft bald ab',
    text: 'Ein Secret Ihrer Entwickler-App bei {service} läuft bald ab. Danach erhalten Programme, die es verwenden, keine neuen Tokens.\n\nClient-ID: {client}. Das Secret endet auf {last4}. Es läuft ab am {time}.\n\nFügen Sie ein neues Secret hinzu, geben Sie es diesen Programmen, und entfernen Sie dann das alte.',
    button: 'App öffnen'
  },
  'service-token-added': {
    subject: '{service}: ein Dienst-Token wurde erstellt',
    heading: 'Ein Dienst-Token wurde erstellt',
    text: 'Ein Administrator hat bei {service} ein Dienst-Token für eine App erstellt. Wer das Token hat, kann als diese App handeln, bis es abläuft oder entfernt wird.\n\nClient-ID: {client}. Das Token endet auf {last4}. Zeit: {time}.\n\nWenn Sie den Grund nicht kennen, [wenden Sie sich an den Support von {service}].'
  },
  'service-token-expiring': {
    subject: '{service}: ein Dienst-Token läuft bald ab',
    heading: 'Ein Dienst-Token läuft bald ab',
    text: 'Ein Dienst-Token einer App bei {service} läuft bald ab. Danach haben Programme, die es verwenden, keinen Zugriff mehr.\n\nClient-ID: {client}. Das Token endet auf {last4}. Es läuft ab am {time}.\n\nEin Administrator kann ein neues erstellen. Geben Sie es diesen Programmen, und entfernen Sie dann das alte.'
  },
  'personal-token-added': {
    subject: '{service}: ein persönliches Zugriffstoken wurde erstellt',
    heading: 'Ein persönliches Zugriffstoken wurde erstellt',
    text: 'Für Ihr Konto bei {service} wurde ein persönliches Zugriffstoken erstellt. Wer das Token hat, kann in dessen Rahmen für Sie handeln, bis es abläuft oder entfernt wird.\n\nDas Token endet auf {last4}. Zeit: {time}. Gerät: {place}.\n\nWenn Sie das nicht waren, entfernen Sie das Token und ändern Sie Ihr Passwort.',
    button: 'Tokens verwalten'
  },
  'personal-token-expiring': {
    subject: '{service}: ein persönliches Zugriffstoken läuft bald ab',
    heading: 'Ein persönliches Zugriffstoken läuft bald ab',
    text: 'Ein persönliches Zugriffstoken Ihres Kontos bei {service} läuft bald ab. Danach haben Programme, die es verwenden, keinen Zugriff mehr.\n\nDas Token endet auf {last4}. Es läuft ab am {time}.\n\nErstellen Sie ein neues, geben Sie es diesen Programmen, und entfernen Sie dann das alte.',
    button: 'Tokens verwalten'
  },
  deleted: {
    subject: '{service}: Ihr Konto wurde gelöscht',
    heading: 'Ihr Konto wurde gelöscht',
    text: 'Ihr Konto bei {service} wurde gelöscht, zusammen mit Ihrem Profil, Ihren Sitzungen und Ihren Entwickler-Apps.\n\nWenn Sie das nicht waren, [wenden Sie sich an den Support von {service}].'
  },
  test: {
    subject: '{service}: Test-E-Mail',
    heading: 'Test-E-Mail',
    text: '{service} kann E-Mails senden.'
  }
}

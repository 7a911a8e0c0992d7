import type { MailTextSource } from './en.ts'

/** The mails in German. */
export const de: MailTextSource = {
  layout: {
    fallback: 'Wenn die Schaltfläche nicht funktioniert, öffnen Sie diesen Link:',
    help: 'Hilfe',
    terms: 'Nutzungsbedingungen',
    privacy: 'Datenschutz'
  },
  reset: {
    subject: '{service}: neues Passwort festlegen',
    heading: 'Neues Passwort festlegen',
    text: 'Jemand möchte ein neues Passwort für Ihr Konto bei {service} festlegen.',
    button: 'Neues Passwort festlegen',
    note: 'Der Link gilt einmal und eine Stunde lang. Wenn Sie das nicht waren, müssen Sie nichts tun: Den Link kann nur verwenden, wer diese E-Mail liest.'
  },
  recovery: {
    subject: '{service}: neues Passwort festlegen',
    heading: 'Neues Passwort festlegen',
    text: 'Die Verwaltung von {service} bittet Sie, ein neues Passwort für Ihr Konto festzulegen.',
    button: 'Neues Passwort festlegen',
    note: 'Der Link gilt einmal und eine Stunde lang.'
  },
  exists: {
    subject: '{service}: Sie haben ein Konto',
    heading: 'Sie haben schon ein Konto',
    text: 'Jemand möchte bei {service} ein Konto mit dieser Adresse anlegen. Sie haben schon eines. Wenn Sie das Passwort vergessen haben, legen Sie ein neues fest.',
    button: 'Neues Passwort festlegen',
    note: 'Der Link gilt einmal und eine Stunde lang. Wenn Sie das nicht waren, müssen Sie nichts tun: Den Link kann nur verwenden, wer diese E-Mail liest.'
  },
  'sign-up': {
    subject: '{service}: Konto anlegen',
    heading: 'Legen Sie Ihr Konto an',
    text: 'Jemand möchte bei {service} ein Konto mit dieser Adresse anlegen. Wählen Sie ein Passwort, um es anzulegen.',
    button: 'Konto anlegen',
    note: 'Der Link gilt einmal und 24 Stunden lang. Wenn Sie das nicht waren, müssen Sie nichts tun: Den Link kann nur verwenden, wer diese E-Mail liest.'
  },
  verify: {
    subject: '{service}: Adresse bestätigen',
    heading: 'Bestätigen Sie Ihre Adresse',
    text: 'Bestätigen Sie, dass diese Adresse zu Ihrem Konto bei {service} gehört.',
    button: 'Adresse bestätigen',
    note: 'Der Link gilt einmal und 24 Stunden lang. Wenn Sie das nicht waren, müssen Sie nichts tun: Den Link kann nur verwenden, wer diese E-Mail liest.'
  },
  change: {
    subject: '{service}: neue Adresse bestätigen',
    heading: 'Bestätigen Sie Ihre neue Adresse',
    text: 'Das Konto {account} bei {service} möchte {address} als neue Adresse. Wenn das Ihr Konto ist, bestätigen Sie die Adresse. Dazu müssen Sie bei diesem Konto angemeldet sein.',
    button: 'Adresse bestätigen',
    note: 'Der Link gilt einmal und eine Stunde lang. Wenn {account} nicht Ihr Konto ist, müssen Sie nichts tun: Jemand hat Ihre Adresse eingegeben, und nichts ändert sich.'
  },
  suggest: {
    subject: '{service}: E-Mail-Adresse hinzufügen',
    heading: 'E-Mail-Adresse hinzufügen',
    text: 'Sie haben sich bei {service} mit {upstream} angemeldet, und Ihr neues Konto {account} hat noch keine E-Mail-Adresse. Möchten Sie {address} hinzufügen? Dazu müssen Sie bei diesem Konto angemeldet sein.',
    button: 'Adresse hinzufügen',
    note: 'Der Link gilt einmal und eine Stunde lang. Wenn Sie dieses Konto nicht angelegt haben, ignorieren Sie diese E-Mail: Ihre Adresse wird dem Konto nicht hinzugefügt.'
  },
  invite: {
    subject: '{service}: ein Konto für Sie',
    heading: 'Sie sind eingeladen',
    text: 'Sie sind zu {service} eingeladen. Wählen Sie ein Passwort, um Ihr Konto zu verwenden.',
    button: 'Einladung annehmen',
    note: 'Der Link gilt einmal und 7 Tage lang.'
  },
  'address-changed': {
    subject: '{service}: die Adresse Ihres Kontos wurde geändert',
    heading: 'Die Adresse Ihres Kontos wurde geändert',
    text: 'Die Adresse Ihres Kontos bei {service} wurde geändert: Seine E-Mails gehen jetzt an ein anderes Postfach.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'address-taken-back': {
    subject: '{service}: die Änderung einer Adresse wurde rückgängig gemacht',
    heading: 'Die Änderung einer Adresse wurde rückgängig gemacht',
    text: 'Diese Adresse gehört nicht mehr zu einem Konto bei {service}: Von der früheren Adresse aus wurde die Änderung rückgängig gemacht. Alle Browser und Apps wurden abgemeldet, und das Passwort gilt nicht mehr.\n\nWenn Sie die Adresse geändert haben, wenden Sie sich an den Betreiber des Dienstes.'
  },
  'address-given-up': {
    subject: '{service}: die Adresse Ihres Kontos wurde ersetzt',
    heading: 'Die Adresse Ihres Kontos wurde ersetzt',
    text: 'Die Verwaltung von {service} hat die Adresse Ihres Kontos ersetzt. E-Mails zu diesem Konto gehen nicht mehr an dieses Postfach.\n\nWenn Sie das nicht erwartet haben, wenden Sie sich an den Betreiber des Dienstes.'
  },
  'address-verified': {
    subject: '{service}: Ihre Adresse ist bestätigt',
    heading: 'Ihre Adresse ist bestätigt',
    text: 'Der Betreiber von {service} hat bestätigt, dass diese Adresse zu Ihrem Konto dort gehört. Sie müssen nichts tun.\n\nWenn Sie dort kein Konto haben, wenden Sie sich an den Betreiber des Dienstes.'
  },
  'password-changed': {
    subject: '{service}: Ihr Passwort wurde geändert',
    heading: 'Ihr Passwort wurde geändert',
    text: 'Das Passwort Ihres Kontos bei {service} wurde geändert, und alle anderen Browser und Apps wurden abgemeldet. Wenn Sie es waren, müssen Sie nichts tun.\n\nWenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest.',
    button: 'Neues Passwort festlegen',
    note: 'Wenn das nicht hilft, wenden Sie sich an den Betreiber des Dienstes.'
  },
  'password-removed': {
    subject: '{service}: Ihr Passwort wurde entfernt',
    heading: 'Ihr Passwort wurde entfernt',
    text: 'Das Passwort Ihres Kontos bei {service} wurde entfernt, und alle anderen Browser und Apps wurden abgemeldet. Sie melden sich auf einem anderen Weg an, den Sie eingerichtet haben.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'first-factor-added': {
    subject: '{service}: Ihr Konto hat jetzt einen zweiten Faktor',
    heading: 'Ein zweiter Faktor wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde eine Authenticator-App hinzugefügt. Zum Anmelden brauchen Sie jetzt auch deren Code.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'factor-added': {
    subject: '{service}: Ihr Konto hat einen weiteren zweiten Faktor',
    heading: 'Ein zweiter Faktor wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde eine Authenticator-App hinzugefügt.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie ein neues Passwort fest, entfernen Sie die App auf der Seite Ihres Kontos und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'first-passkey-added': {
    subject: '{service}: Ihr Konto hat jetzt einen Passkey',
    heading: 'Ein Passkey wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde ein Passkey hinzugefügt. Mit ihm kann man sich ohne das Passwort anmelden.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'passkey-added': {
    subject: '{service}: Ihr Konto hat einen weiteren Passkey',
    heading: 'Ein Passkey wurde hinzugefügt',
    text: 'Zu Ihrem Konto bei {service} wurde ein Passkey hinzugefügt.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie ein neues Passwort fest, entfernen Sie den Passkey auf der Seite Ihres Kontos und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'passkey-removed': {
    subject: '{service}: ein Passkey Ihres Kontos wurde entfernt',
    heading: 'Ein Passkey wurde entfernt',
    text: 'Von Ihrem Konto bei {service} wurde ein Passkey entfernt.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'factor-removed': {
    subject: '{service}: ein zweiter Faktor Ihres Kontos wurde entfernt',
    heading: 'Ein zweiter Faktor wurde entfernt',
    text: 'Von Ihrem Konto bei {service} wurde eine Authenticator-App entfernt.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'identity-linked': {
    subject: '{service}: {upstream} wurde mit Ihrem Konto verbunden',
    heading: '{upstream} wurde mit Ihrem Konto verbunden',
    text: 'Ein Konto bei {upstream} wurde mit Ihrem Konto bei {service} verbunden. Wer es hat, kann sich bei Ihrem anmelden.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'identity-joined': {
    subject: '{service}: Ihr Konto meldet sich jetzt mit {upstream} an',
    heading: 'Ihr Konto meldet sich jetzt mit {upstream} an',
    text: 'Ihr Konto bei {service} meldet sich jetzt mit {upstream} an. Das Passwort und alle anderen Anmeldemethoden von vorher wurden entfernt, zugesandte Links gelten nicht mehr, und alle Browser und Apps wurden abgemeldet.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'identity-rejoined': {
    subject: '{service}: Ihr Konto bei {upstream} wurde ersetzt',
    heading: 'Ihr Konto bei {upstream} wurde ersetzt',
    text: 'Alle Konten bei {upstream} ändern sich. Ihr neues wurde mit Ihrem Konto bei {service} verbunden und das alte getrennt. Alle Browser und Apps wurden abgemeldet.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'identity-replaced': {
    subject: '{service}: Ihr Konto bei {upstream} wurde ersetzt',
    heading: 'Ihr Konto bei {upstream} wurde ersetzt',
    text: 'Ein Administrator von {service} hat Ihr neues Konto bei {upstream} zur Anmeldung zugelassen und das alte getrennt. Alle Browser und Apps wurden abgemeldet.\n\nZeit: {time}.\n\nMelden Sie sich mit {upstream} an, um weiterzumachen. Haben Sie das nicht erwartet, wenden Sie sich an den Betreiber von {service}.',
    button: 'Anmelden'
  },
  'identity-unlinked': {
    subject: '{service}: ein Weg zur Anmeldung wurde entfernt',
    heading: 'Ein Weg zur Anmeldung wurde entfernt',
    text: 'Ein Konto bei einem anderen Anbieter wurde von Ihrem Konto bei {service} getrennt.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest, und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  only: {
    subject: '{service}: Anmeldung mit {upstream}',
    heading: 'Anmeldung mit {upstream}',
    text: 'Jemand wollte ein neues Passwort für Ihr Konto bei {service} setzen. Ihr Konto hat keines: Es meldet sich mit {upstream} an.\n\nWenn Sie sich dort nicht anmelden können, wenden Sie sich an die Betreuer dort.',
    button: 'Anmelden',
    note: 'Wenn Sie nicht darum gebeten haben, müssen Sie nichts tun.'
  },
  'recovery-used': {
    subject: '{service}: ein Wiederherstellungscode wurde benutzt',
    heading: 'Ein Wiederherstellungscode wurde benutzt',
    text: 'Ein Wiederherstellungscode Ihres Kontos bei {service} wurde benutzt. Verbleibende Codes: {count}.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest und erzeugen Sie auf der Seite Ihres Kontos neue Codes.'
  },
  'codes-renewed': {
    subject: '{service}: neue Wiederherstellungscodes',
    heading: 'Neue Wiederherstellungscodes',
    text: 'Für Ihr Konto bei {service} wurden neue Wiederherstellungscodes erzeugt. Die früheren gelten nicht mehr.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest und bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'factor-closed': {
    subject: '{service}: Ihr zweiter Faktor wurde geschlossen',
    heading: 'Ihr zweiter Faktor wurde geschlossen',
    text: 'Bei Ihrem Konto bei {service} hat jemand, der Ihr Passwort kennt, zu oft hintereinander einen falschen Code eingegeben. Ihre Authenticator-App ist geschlossen. Ein Wiederherstellungscode oder ein Passkey öffnet sie wieder, oder die Administration.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie jetzt ein neues Passwort fest.'
  },
  'factor-reset': {
    subject: '{service}: Ihre zweiten Faktoren wurden entfernt',
    heading: 'Ihre zweiten Faktoren wurden entfernt',
    text: 'Die Administration von {service} hat die zweiten Faktoren und die Wiederherstellungscodes Ihres Kontos entfernt und alle Browser und Apps abgemeldet.\n\nZeit: {time}.\n\nHaben Sie das nicht erwartet, bitten Sie den Betreiber des Dienstes um Hilfe.'
  },
  'factor-reset-link': {
    subject: '{service}: Fügen Sie einen neuen zweiten Faktor hinzu',
    heading: 'Fügen Sie einen neuen zweiten Faktor hinzu',
    text: 'Die Administration von {service} hat die zweiten Faktoren und die Wiederherstellungscodes Ihres Kontos entfernt und alle Browser und Apps abgemeldet.\n\nZeit: {time}.\n\nDas Konto braucht einen zweiten Faktor: Fügen Sie einen neuen hinzu. Dazu brauchen Sie diesen Link, Ihr Passwort und eine Authenticator-App.\n\nHaben Sie das nicht erwartet, bitten Sie den Betreiber des Dienstes um Hilfe.',
    button: 'Zweiten Faktor hinzufügen',
    note: 'Der Link gilt einmal und läuft nach 72 Stunden ab. Geben Sie ihn niemandem weiter.'
  },
  'password-set': {
    subject: '{service}: Ihr Konto hat jetzt ein Passwort',
    heading: 'Ihr Konto hat jetzt ein Passwort',
    text: 'Für Ihr Konto bei {service}, das keines hatte, wurde ein Passwort festgelegt.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'codes-made': {
    subject: '{service}: neue Wiederherstellungscodes',
    heading: 'Neue Wiederherstellungscodes',
    text: 'Für Ihr Konto bei {service} wurden neue Wiederherstellungscodes erzeugt. Die alten gelten nicht mehr.\n\nZeit: {time}. Von: {place}.\n\nWenn Sie das waren, ist nichts zu tun. Waren Sie es nicht, machen Sie es rückgängig: Das entfernt auch alles andere, was in den letzten Tagen hinzugefügt wurde, meldet alle Browser und Apps ab und macht Ihr Passwort ungültig.',
    button: 'Das war ich nicht',
    note: 'Der Link gilt {hours} Stunden lang.'
  },
  'identity-connected': {
    subject: '{service}: {upstream} wurde mit Ihrem Konto verbunden',
    heading: '{upstream} wurde mit Ihrem Konto verbunden',
    text: 'Ein Konto bei {upstream} wurde mit Ihrem Konto bei {service} verbunden. Wer es hat, kann sich bei Ihrem anmelden.\n\nZeit: {time}. Von: {place}.\n\nWaren Sie es nicht, legen Sie ein neues Passwort fest, trennen Sie {upstream} auf der Seite Ihres Kontos und wenden Sie sich an den Betreiber von {service}.'
  },
  undone: {
    subject: '{service}: die letzten Änderungen wurden rückgängig gemacht',
    heading: 'Die letzten Änderungen wurden rückgängig gemacht',
    text: 'Alles, was in den letzten Tagen zu Ihrem Konto bei {service} hinzugefügt wurde, ist entfernt. Alle Browser und Apps wurden abgemeldet, und Ihr Passwort gilt nicht mehr.\n\nLegen Sie ein neues fest.',
    button: 'Neues Passwort festlegen',
    note: 'Der Link gilt einmal und läuft nach einer Stunde ab.'
  },
  'undone-only': {
    subject: '{service}: die letzten Änderungen wurden rückgängig gemacht',
    heading: 'Die letzten Änderungen wurden rückgängig gemacht',
    text: 'Alles, was in den letzten Tagen zu Ihrem Konto bei {service} hinzugefügt wurde, ist entfernt. Alle Browser und Apps wurden abgemeldet. Ihr Konto meldet sich weiterhin mit {upstream} an.\n\nWenn Sie sich dort nicht anmelden können, wenden Sie sich an den Betreiber von {service}.',
    button: 'Anmelden'
  },
  'undone-enrol': {
    subject: '{service}: neuen zweiten Faktor hinzufügen',
    heading: 'Fügen Sie einen neuen zweiten Faktor hinzu',
    text: 'Ihr Konto bei {service} braucht einen zweiten Faktor. Der hinzugefügte wurde mit den Änderungen entfernt, die Sie rückgängig gemacht haben.\n\nLegen Sie zuerst mit dem Link in unserer anderen E-Mail ein neues Passwort fest. Fügen Sie dann einen zweiten Faktor hinzu: Dafür brauchen Sie diesen Link.',
    button: 'Zweiten Faktor hinzufügen',
    note: 'Der Link gilt einmal und 72 Stunden lang. Geben Sie ihn an niemanden weiter.'
  },
  'secret-expiring': {
    subject: '{service}: ein Geheimnis Ihrer App läuft ab',
    heading: 'Ein Geheimnis Ihrer App läuft ab',
    text: 'Ein Geheimnis einer App, die Sie bei {service} registriert haben, läuft ab: Danach bekommen die Programme, die es haben, keine Tokens mehr.\n\nClient-ID: {client}. Das Geheimnis endet auf {last4}. Es läuft ab {time}.\n\nFügen Sie ein anderes Geheimnis hinzu, geben Sie es diesen Programmen, und entfernen Sie dann das ablaufende.',
    button: 'App öffnen'
  },
  deleted: {
    subject: '{service}: Ihr Konto wurde gelöscht',
    heading: 'Ihr Konto wurde gelöscht',
    text: 'Ihr Konto bei {service} wurde gelöscht, zusammen mit Ihrem Profil, Ihren Sitzungen und den Apps, die Sie registriert haben.\n\nWenn Sie das nicht waren, wenden Sie sich an den Betreiber des Dienstes.'
  },
  test: {
    subject: '{service}: ein Test',
    heading: 'Das ist ein Test',
    text: 'Diese E-Mail zeigt, dass {service} E-Mails senden kann.'
  }
}

import { html } from '../html.ts'
import type { Texts } from './en.ts'

/** Every text of the pages, in German. */
export const de: Texts = {
  common: {
    errorTitle: (title) => `Fehler: ${title}`,
    continue: 'Weiter',
    cancel: 'Abbrechen',
    account: 'Konto',
    password: 'Passwort',
    signedInAs: (account) => html`Sie sind angemeldet als <strong>${account}</strong>.`,
    goBack: (app) => html`Zurück zu ${app}`,
    theApp: 'der App',
    toAccount: 'Zu Ihrem Konto'
  },
  errors: {
    heading: 'Das hat nicht geklappt',
    forDevelopers: 'Für die Entwickler der App:',
    refused: 'Die Anfrage kann nicht beantwortet werden.',
    wrongPassword: 'Das Konto oder das Passwort ist falsch.',
    tooMany: (seconds) => seconds === undefined
      ? 'Zu viele Versuche. Versuchen Sie es später noch einmal.'
      : `Zu viele Versuche. Versuchen Sie es in ${seconds} ${seconds === 1 ? 'Sekunde' : 'Sekunden'} noch einmal.`,
    passwordClosed: 'Es gab zu viele falsche Versuche. Setzen Sie ein neues Passwort, oder bitten Sie die Administration, dieses wieder freizugeben.',
    passwordShort: (characters) => `Das neue Passwort ist zu kurz. Es braucht mindestens ${characters} Zeichen.`,
    passwordCommon: 'Das neue Passwort ist eines der häufigsten. Wählen Sie ein anderes.',
    passwordName: 'Das neue Passwort darf nicht Ihr Konto oder der Name des Dienstes sein.',
    ourSide: 'Bei uns ist etwas schiefgegangen. Versuchen Sie es gleich noch einmal.',
    notFound: 'Hier ist nichts.',
    tooLarge: 'Das Formular ist zu groß.',
    otherSite: 'Das Formular kam von einer anderen Website.',
    signInOver: 'Diese Anmeldung ist vorbei oder wurde in einem anderen Browser begonnen. Gehen Sie zurück zur App und beginnen Sie neu.',
    pageExpired: 'Diese Seite ist abgelaufen oder wurde in einem anderen Browser geöffnet. Gehen Sie zurück zur App und beginnen Sie neu.'
  },
  signIn: {
    title: 'Anmelden',
    toContinue: (app) => html`um fortzufahren zu <strong>${app}</strong>`,
    toAccount: 'um Ihr Konto zu sehen und zu ändern',
    again: 'Bestätigen Sie, dass Sie es sind',
    againWhy: 'Ihre Anmeldung ist länger als zehn Minuten her. Geben Sie Ihr Passwort noch einmal ein, um fortzufahren.',
    submit: 'Anmelden'
  },
  consent: {
    title: (app) => `Weiter zu ${app}`,
    heading: (app) => html`Weiter zu ${app}`,
    otherAccount: 'Anderes Konto verwenden',
    asks: 'Die App möchte:',
    asksAt: (resource) => html`Die App möchte bei ${resource}:`,
    vouched: 'Der Betreiber dieses Dienstes bürgt für diese App.',
    unvouched: 'Niemand bürgt für diese App.',
    registeredBy: (owner) => html`Registriert hat sie ${owner}.`,
    sentTo: (target) => html`Sie werden weitergeleitet an ${target}.`,
    targetLinks: (scheme) => html`eine App auf diesem Gerät, die ${scheme}-Links öffnet`,
    targetDevice: (host) => html`ein Programm auf diesem Gerät (${host})`,
    allow: 'Erlauben',
    deny: 'Ablehnen'
  },
  scopes: {
    openid: 'wissen, wer Sie sind',
    profile: 'Ihren Namen lesen',
    email: 'Ihre E-Mail-Adresse lesen',
    roles: 'Ihre Rollen lesen',
    offline_access: 'angemeldet bleiben, wenn Sie sie nicht benutzen',
    'account:read': 'Ihr Profil lesen und sehen, wo Sie angemeldet sind',
    'account:write': 'Ihr Profil ändern und Sie anderswo abmelden',
    'account:security': 'ändern, wie Sie sich bei Ihrem Konto anmelden',
    'clients:read': 'die Apps sehen, die Sie registriert haben',
    'clients:write': 'Ihre Apps registrieren, ändern und entfernen und ihre Geheimnisse lesen',
    'users:read': 'alle Benutzer, ihre Apps und Sitzungen lesen, soweit Ihre Rollen es erlauben',
    'users:write': 'Benutzer, ihre Apps und Sitzungen ändern und entfernen, soweit Ihre Rollen es erlauben',
    other: (scope) => html`${scope} verwenden`
  },
  device: {
    title: 'Gerät verbinden',
    own: 'Fahren Sie nur fort, wenn Sie sich auf Ihrem eigenen Gerät anmelden.',
    code: 'Code, den das Gerät zeigt',
    codeHint: 'Acht Buchstaben, zum Beispiel WDJB-MJHT',
    compareHeading: 'Zeigt Ihr Gerät diesen Code?',
    compareWarning: 'Fahren Sie nur fort, wenn Sie sich gerade auf Ihrem eigenen Gerät anmelden und es jetzt denselben Code zeigt. Wenn Ihnen jemand diesen Link oder Code geschickt hat, schließen Sie diese Seite.',
    compareSame: 'Mein Gerät zeigt diesen Code',
    compareOther: 'Anderen Code eingeben',
    confirmTitle: 'Ist das Ihr Gerät?',
    confirmText: (app) => html`<strong>${app}</strong> möchte sich in Ihrem Namen anmelden. Fahren Sie nur fort, wenn Sie das begonnen haben und das Gerät diesen Code zeigt:`,
    willSignIn: 'Sie werden aufgefordert, sich anzumelden.',
    cameFrom: (address) => html`Die Anfrage kam von ${address}.`,
    mine: 'Ja, mein Gerät',
    notMine: 'Nein',
    doneTitle: 'Gerät verbunden',
    doneText: (app) => html`Sie sind auf dem Gerät bei <strong>${app}</strong> angemeldet. Sie können diese Seite schließen.`,
    noCode: 'Geben Sie den Code ein, den das Gerät zeigt.',
    unknownCode: 'Diesen Code gibt es nicht. Prüfen Sie den Code auf dem Gerät.',
    expiredCode: 'Der Code ist abgelaufen. Beginnen Sie auf dem Gerät neu.',
    usedCode: 'Der Code wurde schon benutzt. Beginnen Sie auf dem Gerät neu.',
    refused: 'Das Gerät wurde abgelehnt.',
    failed: 'Das hat nicht geklappt. Beginnen Sie auf dem Gerät neu.'
  },
  signOut: {
    title: 'Abmelden',
    heading: 'Abmelden?',
    byApp: (app) => html`<strong>${app}</strong> hat Sie abgemeldet.`,
    everywhere: 'Wenn Sie sich hier abmelden, werden Sie auch von den Apps abgemeldet, bei denen Sie sich in diesem Browser angemeldet haben.',
    submit: 'Abmelden',
    stay: 'Angemeldet bleiben',
    doneTitle: 'Abgemeldet',
    done: 'Sie sind abgemeldet.',
    doneOf: (app) => html`Sie sind abgemeldet von <strong>${app}</strong>.`
  }
}

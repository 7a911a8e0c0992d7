import type { MailAbout, MailTexts } from './en.ts'

const IGNORE = 'Wenn Sie das nicht waren, müssen Sie nichts tun: Den Link kann nur verwenden, wer diese E-Mail liest.'
const ONCE = 'Der Link gilt einmal'

/** The mails in German. */
export const de = (service: string, { account = '', address = '' }: MailAbout = {}): MailTexts => ({
  reset: {
    subject: `${service}: neues Passwort festlegen`,
    before: [`Jemand möchte ein neues Passwort für Ihr Konto bei ${service} festlegen.`],
    link: 'Neues Passwort festlegen',
    after: [`${ONCE} und eine Stunde lang.`, IGNORE]
  },
  recovery: {
    subject: `${service}: neues Passwort festlegen`,
    before: [`Die Verwaltung von ${service} bittet Sie, ein neues Passwort für Ihr Konto festzulegen.`],
    link: 'Neues Passwort festlegen',
    after: [`${ONCE} und eine Stunde lang.`]
  },
  exists: {
    subject: `${service}: Sie haben ein Konto`,
    before: [`Jemand möchte bei ${service} ein Konto mit dieser Adresse anlegen. Sie haben schon eines. Wenn Sie das Passwort vergessen haben, legen Sie ein neues fest.`],
    link: 'Neues Passwort festlegen',
    after: [`${ONCE} und eine Stunde lang.`, IGNORE]
  },
  'sign-up': {
    subject: `${service}: Konto anlegen`,
    before: [`Jemand möchte bei ${service} ein Konto mit dieser Adresse anlegen. Wählen Sie ein Passwort, um es anzulegen.`],
    link: 'Konto anlegen',
    after: [`${ONCE} und 24 Stunden lang.`, IGNORE]
  },
  verify: {
    subject: `${service}: Adresse bestätigen`,
    before: [`Bestätigen Sie, dass diese Adresse zu Ihrem Konto bei ${service} gehört.`],
    link: 'Adresse bestätigen',
    after: [`${ONCE} und 24 Stunden lang.`, IGNORE]
  },
  change: {
    subject: `${service}: neue Adresse bestätigen`,
    before: [`Das Konto ${account} bei ${service} möchte ${address} als neue Adresse. Wenn das Ihr Konto ist, bestätigen Sie die Adresse. Dazu müssen Sie bei diesem Konto angemeldet sein.`],
    link: 'Adresse bestätigen',
    after: [`${ONCE} und eine Stunde lang.`, `Wenn ${account} nicht Ihr Konto ist, müssen Sie nichts tun: Jemand hat Ihre Adresse eingegeben, und nichts ändert sich.`]
  },
  invite: {
    subject: `${service}: ein Konto für Sie`,
    before: [`Sie sind zu ${service} eingeladen. Wählen Sie ein Passwort, um Ihr Konto zu verwenden.`],
    link: 'Einladung annehmen',
    after: [`${ONCE} und 7 Tage lang.`]
  },
  'address-changed': {
    subject: `${service}: die Adresse Ihres Kontos wurde geändert`,
    before: [`Ihr Konto bei ${service} hat jetzt eine andere Adresse. Wenn Sie das nicht waren, machen Sie die Änderung rückgängig: Dabei werden auch alle Browser und Apps abgemeldet.`],
    link: 'Änderung rückgängig machen',
    after: ['Der Link gilt 72 Stunden lang.', 'Wenn Sie es waren, müssen Sie nichts tun.']
  },
  'address-restored': {
    subject: `${service}: die Adresse Ihres Kontos wurde wiederhergestellt`,
    before: [`Die Änderung Ihrer Adresse bei ${service} wurde rückgängig gemacht, und alle Browser und Apps wurden abgemeldet. Legen Sie jetzt ein neues Passwort fest: Jemand anderes kennt vielleicht das alte.`],
    link: 'Neues Passwort festlegen',
    after: [`${ONCE} und eine Stunde lang.`]
  },
  test: { subject: `${service}: ein Test`, before: [`Diese E-Mail zeigt, dass ${service} E-Mails senden kann.`], after: [] },
  'password-changed': {
    subject: `${service}: Ihr Passwort wurde geändert`,
    before: [`Das Passwort Ihres Kontos bei ${service} wurde geändert, und alle anderen Browser und Apps wurden abgemeldet.`],
    after: ['Wenn Sie das nicht waren, legen Sie jetzt ein neues Passwort fest, oder wenden Sie sich an den Betreiber des Dienstes.']
  }
})

/** The texts of a mail: paragraphs before and after its link. */
export interface MailText {
  subject: string
  before: readonly string[]
  /** The text of the link. */
  link?: string
  after: readonly string[]
}

/** What a mail names besides the service. */
export interface MailAbout {
  account?: string
  address?: string
}

const IGNORE = 'If you did not ask for this, do nothing: the link works only for whoever reads this mail.'
const ONCE = 'The link works once.'

/** The mails in English. `service` is the name of the service, as its operator configured it. */
export const en = (service: string, { account = '', address = '' }: MailAbout = {}) => ({
  reset: {
    subject: `${service}: set a new password`,
    before: [`Somebody asked to set a new password for your account at ${service}.`],
    link: 'Set a new password',
    after: [`${ONCE} It expires in an hour.`, IGNORE]
  },
  recovery: {
    subject: `${service}: set a new password`,
    before: [`An administrator of ${service} asks you to set a new password for your account.`],
    link: 'Set a new password',
    after: [`${ONCE} It expires in an hour.`]
  },
  exists: {
    subject: `${service}: you have an account`,
    before: [`Somebody asked for an account at ${service} with this address. You have one already. If you have forgotten the password, set a new one.`],
    link: 'Set a new password',
    after: [`${ONCE} It expires in an hour.`, IGNORE]
  },
  'sign-up': {
    subject: `${service}: create your account`,
    before: [`Somebody asked for an account at ${service} with this address. Choose a password to create it.`],
    link: 'Create the account',
    after: [`${ONCE} It expires in 24 hours.`, IGNORE]
  },
  verify: {
    subject: `${service}: confirm your address`,
    before: [`Confirm that this address belongs to your account at ${service}.`],
    link: 'Confirm the address',
    after: [`${ONCE} It expires in 24 hours.`, IGNORE]
  },
  change: {
    subject: `${service}: confirm your new address`,
    before: [`The account ${account} at ${service} asks for ${address} as its new address. If this is your account, confirm the address. You need to be signed in to it.`],
    link: 'Confirm the address',
    after: [`${ONCE} It expires in an hour.`, `If ${account} is not your account, do nothing: somebody has typed your address, and nothing changes.`]
  },
  invite: {
    subject: `${service}: an account for you`,
    before: [`You are invited to ${service}. Choose a password to use your account.`],
    link: 'Accept the invitation',
    after: [`${ONCE} It expires in 7 days.`]
  },
  'address-changed': {
    subject: `${service}: the address of your account was changed`,
    before: [`The address of your account at ${service} is another one now. If it was not you, undo the change: this also signs out every browser and app.`],
    link: 'Undo the change',
    after: ['The link works for 72 hours.', 'If it was you, do nothing.']
  },
  'address-restored': {
    subject: `${service}: the address of your account was restored`,
    before: [`The change of your address at ${service} was undone, and every browser and app was signed out. Set a new password now: somebody else may know the old one.`],
    link: 'Set a new password',
    after: [`${ONCE} It expires in an hour.`]
  },
  test: { subject: `${service}: a test`, before: [`This mail shows that ${service} can send mails.`], after: [] },
  'password-changed': {
    subject: `${service}: your password was changed`,
    before: [`The password of your account at ${service} was changed, and every other browser and app was signed out.`],
    after: ['If it was not you, set a new password now, or ask the operator of the service for help.']
  }
}) satisfies Record<string, MailText>

export type MailTexts = Record<keyof ReturnType<typeof en>, MailText>

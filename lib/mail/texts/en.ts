import type { Translated } from '../../pages/texts/template.ts'

/** The texts of a mail. `text` is before the button, and an empty line in it begins a paragraph. `note` is below the button. */
export interface MailText {
  readonly subject: string
  readonly heading: string
  readonly text: string
  readonly button?: string
  readonly note?: string
}

/**
 * The mails in English. `{service}` is the name of the service, as its operator configured it. `{account}` and `{address}` are those of
 * the user who asks for a change of their address. No mail has any other text of users.
 */
export const en = {
  /** What all mails have. */
  layout: {
    fallback: 'If the button does not work, open this link:',
    help: 'Help',
    terms: 'Terms of use',
    privacy: 'Privacy notice'
  },
  reset: {
    subject: '{service}: set a new password',
    heading: 'Set a new password',
    text: 'Somebody asked to set a new password for your account at {service}.',
    button: 'Set a new password',
    note: 'The link works once and expires in an hour. If you did not ask for this, do nothing: the link works only for whoever reads this mail.'
  },
  recovery: {
    subject: '{service}: set a new password',
    heading: 'Set a new password',
    text: 'An administrator of {service} asks you to set a new password for your account.',
    button: 'Set a new password',
    note: 'The link works once and expires in an hour.'
  },
  exists: {
    subject: '{service}: you have an account',
    heading: 'You have an account already',
    text: 'Somebody asked for an account at {service} with this address. You have one already. If you have forgotten the password, set a new one.',
    button: 'Set a new password',
    note: 'The link works once and expires in an hour. If you did not ask for this, do nothing: the link works only for whoever reads this mail.'
  },
  'sign-up': {
    subject: '{service}: create your account',
    heading: 'Create your account',
    text: 'Somebody asked for an account at {service} with this address. Choose a password to create it.',
    button: 'Create the account',
    note: 'The link works once and expires in 24 hours. If you did not ask for this, do nothing: the link works only for whoever reads this mail.'
  },
  verify: {
    subject: '{service}: confirm your address',
    heading: 'Confirm your address',
    text: 'Confirm that this address belongs to your account at {service}.',
    button: 'Confirm the address',
    note: 'The link works once and expires in 24 hours. If you did not ask for this, do nothing: the link works only for whoever reads this mail.'
  },
  change: {
    subject: '{service}: confirm your new address',
    heading: 'Confirm your new address',
    text: 'The account {account} at {service} asks for {address} as its new address. If this is your account, confirm the address. You need to be signed in to it.',
    button: 'Confirm the address',
    note: 'The link works once and expires in an hour. If {account} is not your account, do nothing: somebody has typed your address, and nothing changes.'
  },
  invite: {
    subject: '{service}: an account for you',
    heading: 'You are invited',
    text: 'You are invited to {service}. Choose a password to use your account.',
    button: 'Accept the invitation',
    note: 'The link works once and expires in 7 days.'
  },
  'address-changed': {
    subject: '{service}: the address of your account was changed',
    heading: 'The address of your account was changed',
    text: 'The address of your account at {service} is another one now. If it was you, do nothing.\n\nIf it was not you, undo the change: this also signs out every browser and app, and ends the password.',
    button: 'Undo the change',
    note: 'The link works for 72 hours.'
  },
  'address-restored': {
    subject: '{service}: the address of your account was restored',
    heading: 'The address of your account was restored',
    text: 'The change of your address at {service} was undone. Every browser and app was signed out, and your password no longer works.\n\nSet a new one.',
    button: 'Set a new password',
    note: 'The link works once and expires in an hour.'
  },
  'address-taken-back': {
    subject: '{service}: a change of address was undone',
    heading: 'A change of address was undone',
    text: 'This address no longer belongs to an account at {service}: its former address has undone the change. Every browser and app was signed out, and the password no longer works.\n\nIf you made the change, ask the operator of the service for help.'
  },
  'address-given-up': {
    subject: '{service}: the address of your account was replaced',
    heading: 'The address of your account was replaced',
    text: 'An administrator of {service} has replaced the address of your account. Mails about the account no longer come to this mailbox.\n\nIf you did not expect this, ask the operator of the service for help.'
  },
  'address-verified': {
    subject: '{service}: your address is confirmed',
    heading: 'Your address is confirmed',
    text: 'The operator of {service} has confirmed that this address belongs to your account there. You need to do nothing.\n\nIf you have no account there, ask the operator of the service for help.'
  },
  'password-changed': {
    subject: '{service}: your password was changed',
    heading: 'Your password was changed',
    text: 'The password of your account at {service} was changed, and every other browser and app was signed out. If it was you, do nothing.\n\nIf it was not you, set a new password now.',
    button: 'Set a new password',
    note: 'If that does not help, ask the operator of the service.'
  },
  'first-factor-added': {
    subject: '{service}: a second factor was added to your account',
    heading: 'A second factor was added',
    text: 'An authenticator app was added to your account at {service}: signing in now takes its code too.\n\nTime: {time}. From: {place}.\n\nIf it was you, do nothing. If it was not you, remove it: this also signs out every browser and app, and ends the password.',
    button: 'It was not me',
    note: 'The link works for {hours} hours.'
  },
  'factor-added': {
    subject: '{service}: a second factor was added to your account',
    heading: 'A second factor was added',
    text: 'An authenticator app was added to your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password, remove the app on the page of your account, and ask the operator of the service for help.'
  },
  'factor-removed': {
    subject: '{service}: a second factor was removed from your account',
    heading: 'A second factor was removed',
    text: 'An authenticator app was removed from your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and ask the operator of the service for help.'
  },
  'recovery-used': {
    subject: '{service}: a recovery code was used',
    heading: 'A recovery code was used',
    text: 'A recovery code of your account at {service} was used. Codes that are left: {count}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and make new recovery codes on the page of your account.'
  },
  'codes-renewed': {
    subject: '{service}: new recovery codes',
    heading: 'New recovery codes',
    text: 'New recovery codes were made for your account at {service}. The former ones work no more.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and ask the operator of the service for help.'
  },
  'factor-closed': {
    subject: '{service}: your second factor was closed',
    heading: 'Your second factor was closed',
    text: 'There were too many wrong codes in a row at your account at {service}, from somebody who knows your password. Your authenticator app is closed. A recovery code opens it, and so can an administrator.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now.'
  },
  'factor-reset': {
    subject: '{service}: your second factors were removed',
    heading: 'Your second factors were removed',
    text: 'An administrator of {service} has removed the second factors and the recovery codes of your account, and signed out every browser and app.\n\nTime: {time}.\n\nIf you did not expect this, ask the operator of the service for help.'
  },
  'factor-undone': {
    subject: '{service}: the second factor was removed again',
    heading: 'The second factor was removed again',
    text: 'What was added to your account at {service} was removed again. Every browser and app was signed out, and your password no longer works.\n\nSet a new one.',
    button: 'Set a new password',
    note: 'The link works once and expires in an hour.'
  },
  deleted: {
    subject: '{service}: your account was deleted',
    heading: 'Your account was deleted',
    text: 'Your account at {service} was deleted, together with your profile, your sessions and the apps that you registered.\n\nIf it was not you, ask the operator of the service for help.'
  },
  test: {
    subject: '{service}: a test',
    heading: 'This is a test',
    text: 'This mail shows that {service} can send mails.'
  }
} as const

/** The texts of another language. */
export type MailTextSource = Translated<typeof en>

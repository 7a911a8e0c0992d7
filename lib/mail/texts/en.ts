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
  suggest: {
    subject: '{service}: add your email address',
    heading: 'Add your email address',
    text: 'You signed in to {service} with {upstream}, and your new account {account} has no email address yet. Add {address} to it? You need to be signed in to that account.',
    button: 'Add the address',
    note: 'The link works once and expires in an hour. If you did not create this account, ignore this email: your address is not added to it.'
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
    text: 'The address of your account at {service} was changed: its emails go to another inbox now.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
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
  'password-removed': {
    subject: '{service}: your password was removed',
    heading: 'Your password was removed',
    text: 'The password of your account at {service} was removed, and every other browser and app was signed out. You sign in by another way that you have set up.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and ask the operator of the service for help.'
  },
  'first-factor-added': {
    subject: '{service}: a second factor was added to your account',
    heading: 'A second factor was added',
    text: 'An authenticator app was added to your account at {service}. Signing in now needs its code too.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'factor-added': {
    subject: '{service}: a second factor was added to your account',
    heading: 'A second factor was added',
    text: 'An authenticator app was added to your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password, remove the app on the page of your account, and ask the operator of the service for help.'
  },
  'first-passkey-added': {
    subject: '{service}: a passkey was added to your account',
    heading: 'A passkey was added',
    text: 'A passkey was added to your account at {service}. It can sign in without the password.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'passkey-added': {
    subject: '{service}: a passkey was added to your account',
    heading: 'A passkey was added',
    text: 'A passkey was added to your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password, remove the passkey on the page of your account, and ask the operator of the service for help.'
  },
  'passkey-removed': {
    subject: '{service}: a passkey was removed from your account',
    heading: 'A passkey was removed',
    text: 'A passkey was removed from your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and ask the operator of the service for help.'
  },
  'factor-removed': {
    subject: '{service}: a second factor was removed from your account',
    heading: 'A second factor was removed',
    text: 'An authenticator app was removed from your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and ask the operator of the service for help.'
  },
  'identity-linked': {
    subject: '{service}: {upstream} was connected to your account',
    heading: '{upstream} was connected to your account',
    text: 'An account at {upstream} was connected to your account at {service}. Whoever has it can sign in to yours.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'identity-joined': {
    subject: '{service}: your account now signs in with {upstream}',
    heading: 'Your account now signs in with {upstream}',
    text: 'Your account at {service} now signs in with {upstream}. The password and every other sign-in method from before were removed, links that were sent to you no longer work, and every browser and app was signed out.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'identity-rejoined': {
    subject: '{service}: your account at {upstream} was replaced',
    heading: 'Your account at {upstream} was replaced',
    text: 'All accounts at {upstream} change. Your new one was connected to your account at {service}, and the old one was disconnected. Every browser and app was signed out.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'identity-replaced': {
    subject: '{service}: your account at {upstream} was replaced',
    heading: 'Your account at {upstream} was replaced',
    text: 'An administrator of {service} allowed your new account at {upstream} to sign in, and disconnected the old one. Every browser and app was signed out.\n\nTime: {time}.\n\nSign in with {upstream} to continue. If you did not expect this, contact whoever runs {service}.',
    button: 'Sign in'
  },
  'identity-unlinked': {
    subject: '{service}: a way to sign in was removed from your account',
    heading: 'A way to sign in was removed',
    text: 'An account at another provider was disconnected from your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now, and ask the operator of the service for help.'
  },
  only: {
    subject: '{service}: sign in with {upstream}',
    heading: 'Sign in with {upstream}',
    text: 'Somebody asked to set a new password for your account at {service}. Your account has none: it signs in with {upstream}.\n\nIf you cannot sign in there, ask the people who run it.',
    button: 'Sign in',
    note: 'If you did not ask for this, do nothing.'
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
    text: 'There were too many wrong codes in a row at your account at {service}, from somebody who knows your password. Your authenticator app is closed. A recovery code or a passkey opens it, and so can an administrator.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password now.'
  },
  'factor-reset': {
    subject: '{service}: your second factors were removed',
    heading: 'Your second factors were removed',
    text: 'An administrator of {service} has removed the second factors and the recovery codes of your account, and signed out every browser and app.\n\nTime: {time}.\n\nIf you did not expect this, ask the operator of the service for help.'
  },
  'factor-reset-link': {
    subject: '{service}: add a new second factor',
    heading: 'Add a new second factor',
    text: 'An administrator of {service} has removed the second factors and the recovery codes of your account, and signed out every browser and app.\n\nTime: {time}.\n\nThe account needs a second factor: add a new one. For that you need this link, your password, and an authenticator app.\n\nIf you did not expect this, ask the operator of the service for help.',
    button: 'Add a second factor',
    note: 'The link works once and expires in 72 hours. Pass it on to nobody.'
  },
  'password-set': {
    subject: '{service}: your account has a password now',
    heading: 'Your account has a password now',
    text: 'A password was set for your account at {service}, which had none.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'codes-made': {
    subject: '{service}: new recovery codes',
    heading: 'New recovery codes',
    text: 'New recovery codes were made for your account at {service}. Your old codes no longer work.\n\nTime: {time}. From: {place}.\n\nIf this was you, you are done. If it wasn\u2019t, undo it: this also removes everything else that was added in the last few days, signs out every browser and app, and ends your password.',
    button: 'This wasn\u2019t me',
    note: 'The link works for {hours} hours.'
  },
  'identity-connected': {
    subject: '{service}: {upstream} was connected to your account',
    heading: '{upstream} was connected to your account',
    text: 'An account at {upstream} was connected to your account at {service}. Whoever has it can sign in to yours.\n\nTime: {time}. From: {place}.\n\nIf it was not you, set a new password, disconnect {upstream} on the page of your account, and contact whoever runs {service}.'
  },
  undone: {
    subject: '{service}: recent changes were undone',
    heading: 'Recent changes were undone',
    text: 'Everything that was added to your account at {service} in the last few days was removed. Every browser and app was signed out, and your password no longer works.\n\nSet a new one.',
    button: 'Set a new password',
    note: 'The link works once and expires in an hour.'
  },
  'undone-only': {
    subject: '{service}: recent changes were undone',
    heading: 'Recent changes were undone',
    text: 'Everything that was added to your account at {service} in the last few days was removed. Every browser and app was signed out. Your account still signs in with {upstream}.\n\nIf you cannot sign in there, contact whoever runs {service}.',
    button: 'Sign in'
  },
  'undone-enrol': {
    subject: '{service}: add a new second factor',
    heading: 'Add a new second factor',
    text: 'Your account at {service} needs a second factor, and the one that was added was removed with the changes that you undid.\n\nFirst set a new password with the link in our other email. Then add a second factor: for that you need this link.',
    button: 'Add a second factor',
    note: 'The link works once and expires in 72 hours. Don\u2019t share it with anyone.'
  },
  'secret-expiring': {
    subject: '{service}: a secret of your app expires',
    heading: 'A secret of your app expires',
    text: 'A secret of an app that you registered at {service} expires: from then on, the programs that have it get no more tokens.\n\nClient ID: {client}. The secret ends with {last4}. It expires {time}.\n\nAdd another secret, give it to these programs, and then remove the one that expires.',
    button: 'Open the app'
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

import type { Translated } from '../../pages/texts/template.ts'

/** The texts of a mail. `text` is before the button, and an empty line in it begins a paragraph. `note` is below the button. */
export interface MailText<T = string> {
  readonly subject: T
  readonly heading: T
  readonly text: T
  readonly button?: T
  readonly note?: T
}

/**
 * The mails in English. `{service}` is the name of the service, as its operator configured it. `{account}` and `{address}` are those of
 * the user who asks for a change of their address. No mail has any other text of users.
 */
export const en = {
  /** What all mails have. */
  layout: {
    fallback: 'If the button does not work, open this link:',
    tokensEnded: 'Personal access tokens that stopped working: {tokens}.',
    help: 'Help',
    terms: 'Terms of use',
    privacy: 'Privacy notice'
  },
  reset: {
    subject: '{service}: set a new password',
    heading: 'Set a new password',
    text: 'Somebody requested a link to set a new password for your account at {service}.',
    button: 'Set a new password',
    note: 'This link works once and expires in an hour. If you didn\u2019t request it, ignore this email: your password stays as it is.'
  },
  recovery: {
    subject: '{service}: set a new password',
    heading: 'Set a new password',
    text: 'An administrator of {service} asked you to set a new password for your account.',
    button: 'Set a new password',
    note: 'This link works once and expires in an hour.'
  },
  exists: {
    subject: '{service}: you already have an account',
    heading: 'You already have an account',
    text: 'You already have an account at {service}. Somebody just tried to sign up with your email address.\n\nForgot your password? Set a new one.',
    button: 'Set a new password',
    note: 'This link works once and expires in an hour. If you didn\u2019t try to sign up, ignore this email: your account stays as it is.'
  },
  'sign-up': {
    subject: '{service}: create your account',
    heading: 'Create your account',
    text: 'Somebody signed up at {service} with this email address. Choose a password to create your account.',
    button: 'Create account',
    note: 'This link works once and expires in 24 hours. If you didn\u2019t sign up, ignore this email: no account is created.'
  },
  verify: {
    subject: '{service}: confirm your email address',
    heading: 'Confirm your email address',
    text: 'Confirm that this email address belongs to your account at {service}.',
    button: 'Confirm address',
    note: 'This link works once and expires in 24 hours. If you didn\u2019t request it, ignore this email: nothing changes.'
  },
  change: {
    subject: '{service}: confirm your new email address',
    heading: 'Confirm your new email address',
    text: 'The account {account} at {service} wants to use {address} as its new email address. If this is your account, confirm the address. You need to be signed in to it.',
    button: 'Confirm address',
    note: 'This link works once and expires in an hour. If {account} isn\u2019t your account, ignore this email: somebody entered your address, and nothing changes.'
  },
  suggest: {
    subject: '{service}: add your email address',
    heading: 'Add your email address',
    text: 'You signed in to {service} with {upstream}, and your new account {account} has no email address yet. Add {address} to it? You need to be signed in to that account.',
    button: 'Add address',
    note: 'This link works once and expires in an hour. If you didn\u2019t create this account, ignore this email: your address isn\u2019t added to it.'
  },
  invite: {
    subject: '{service}: you\u2019re invited',
    heading: 'You\u2019re invited',
    text: 'You\u2019re invited to {service}. Choose a password to start using your account.',
    button: 'Accept invitation',
    note: 'This link works once and expires in 7 days.'
  },
  'address-changed': {
    subject: '{service}: your email address was changed',
    heading: 'Your email address was changed',
    text: 'The email address of your account at {service} was changed. Emails about your account now go to another inbox.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'address-taken-back': {
    subject: '{service}: a change of email address was undone',
    heading: 'A change of email address was undone',
    text: 'This email address no longer belongs to an account at {service}: the change was undone from the previous address. Every browser and app was signed out, and the password no longer works.\n\nIf you made the change, [contact {service} support].'
  },
  'address-given-up': {
    subject: '{service}: your email address was replaced',
    heading: 'Your email address was replaced',
    text: 'An administrator of {service} replaced the email address of your account. Emails about your account no longer come to this inbox.\n\nIf you didn\u2019t expect this, [contact {service} support].'
  },
  'address-verified': {
    subject: '{service}: your email address is confirmed',
    heading: 'Your email address is confirmed',
    text: '{service} confirmed that this email address belongs to your account. There\u2019s nothing to do.\n\nIf you don\u2019t have an account there, [contact {service} support].'
  },
  'password-changed': {
    subject: '{service}: your password was changed',
    heading: 'Your password was changed',
    text: 'The password of your account at {service} was changed, and every other browser and app was signed out.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, set a new password now.',
    button: 'Set a new password',
    note: 'If that doesn\u2019t help, [contact {service} support].'
  },
  'password-removed': {
    subject: '{service}: your password was removed',
    heading: 'Your password was removed',
    text: 'The password of your account at {service} was removed, and every other browser and app was signed out. You now sign in with your other sign-in methods.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now, and [contact {service} support].'
  },
  'first-factor-added': {
    subject: '{service}: two-step verification is on',
    heading: 'Two-step verification is on',
    text: 'An authenticator app was added to your account at {service}. From now on, you need a code from it to sign in.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'factor-added': {
    subject: '{service}: an authenticator app was added',
    heading: 'An authenticator app was added',
    text: 'An authenticator app was added to your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password, remove the app on your account page, and [contact {service} support].'
  },
  'first-passkey-added': {
    subject: '{service}: a passkey was added',
    heading: 'A passkey was added',
    text: 'A passkey was added to your account at {service}. It can be used to sign in without your password.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'passkey-added': {
    subject: '{service}: a passkey was added',
    heading: 'A passkey was added',
    text: 'A passkey was added to your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password, remove the passkey on your account page, and [contact {service} support].'
  },
  'passkey-removed': {
    subject: '{service}: a passkey was removed',
    heading: 'A passkey was removed',
    text: 'A passkey was removed from your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now, and [contact {service} support].'
  },
  'factor-removed': {
    subject: '{service}: an authenticator app was removed',
    heading: 'An authenticator app was removed',
    text: 'An authenticator app was removed from your account at {service}.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now, and [contact {service} support].'
  },
  'identity-linked': {
    subject: '{service}: {upstream} was connected to your account',
    heading: '{upstream} was connected to your account',
    text: 'An account at {upstream} was connected to your account at {service}. It can be used to sign in to your account.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'identity-joined': {
    subject: '{service}: you now sign in with {upstream}',
    heading: 'You now sign in with {upstream}',
    text: 'You now sign in to your account at {service} with {upstream}. Your password and your other sign-in methods were removed, links we sent you no longer work, and every browser and app was signed out.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'identity-rejoined': {
    subject: '{service}: your account at {upstream} was replaced',
    heading: 'Your account at {upstream} was replaced',
    text: 'All accounts at {upstream} are being replaced. Your new one was connected to your account at {service}, and the old one was disconnected. Every browser and app was signed out.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'identity-replaced': {
    subject: '{service}: your account at {upstream} was replaced',
    heading: 'Your account at {upstream} was replaced',
    text: 'An administrator of {service} allowed your new account at {upstream} to sign in, and disconnected the old one. Every browser and app was signed out.\n\nTime: {time}.\n\nSign in with {upstream} to continue. If you didn\u2019t expect this, [contact {service} support].',
    button: 'Sign in'
  },
  'identity-unlinked': {
    subject: '{service}: a sign-in method was removed',
    heading: 'A sign-in method was removed',
    text: 'An account at another provider was disconnected from your account at {service}. It can no longer be used to sign in.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now, and [contact {service} support].'
  },
  only: {
    subject: '{service}: sign in with {upstream}',
    heading: 'Sign in with {upstream}',
    text: 'Somebody requested a link to set a new password for your account at {service}. Your account has no password: you sign in with {upstream}.\n\nIf you can\u2019t sign in there, contact {upstream}.',
    button: 'Sign in',
    note: 'If you didn\u2019t request this, ignore this email.'
  },
  'recovery-used': {
    subject: '{service}: a backup code was used',
    heading: 'A backup code was used',
    text: 'A backup code of your account at {service} was used. Codes left: {count}.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now, and create new backup codes on your account page.'
  },
  'codes-renewed': {
    subject: '{service}: new backup codes',
    heading: 'New backup codes',
    text: 'New backup codes were created for your account at {service}. Your old codes no longer work.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now, and [contact {service} support].'
  },
  'factor-closed': {
    subject: '{service}: your authenticator app is locked',
    heading: 'Your authenticator app is locked',
    text: 'Somebody who knows your password entered too many wrong codes for your account at {service}, so your authenticator app is locked. To unlock it, sign in with a backup code or a passkey, or [contact {service} support].\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password now.'
  },
  'codes-closed': {
    subject: '{service}: your backup codes were locked',
    heading: 'Your backup codes were locked',
    text: 'Somebody who knows your password at {service} entered too many wrong backup codes in a row. Your backup codes are locked. To unlock them, sign in with your authenticator app or a passkey, or [contact support].\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, choose a new password now.'
  },
  unlocked: {
    subject: '{service}: your account was unlocked',
    heading: 'Your account was unlocked',
    text: 'The {service} support team unlocked your account after too many wrong passwords or codes. You can sign in again.\n\nTime: {time}.\n\nIf you didn\u2019t ask for this, set a new password now, and [contact {service} support].'
  },
  'factor-reset': {
    subject: '{service}: your two-step verification was reset',
    heading: 'Your two-step verification was reset',
    text: 'An administrator of {service} removed your methods for two-step verification and your backup codes, and signed out every browser and app.\n\nTime: {time}.\n\nIf you didn\u2019t expect this, [contact {service} support].'
  },
  'factor-reset-link': {
    subject: '{service}: set up two-step verification',
    heading: 'Set up two-step verification',
    text: 'An administrator of {service} removed your methods for two-step verification and your backup codes, and signed out every browser and app.\n\nTime: {time}.\n\nYour account requires two-step verification. Set it up again with this link, your password and an authenticator app. If you didn\u2019t expect this, [contact {service} support].',
    button: 'Set up two-step verification',
    note: 'This link works once and expires in 72 hours. Don\u2019t share it with anyone.'
  },
  'password-set': {
    subject: '{service}: your account has a password now',
    heading: 'Your account has a password now',
    text: 'A password was set for your account at {service}, which had none.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'codes-made': {
    subject: '{service}: new backup codes',
    heading: 'New backup codes',
    text: 'New backup codes were created for your account at {service}. Your old codes no longer work.\n\nTime: {time}. From: {place}.\n\nIf this was you, there\u2019s nothing to do. If it wasn\u2019t, undo it: this also removes everything else added in the last few days, signs out every browser and app, and resets your password.',
    button: 'This wasn\u2019t me',
    note: 'This link works for {hours} hours.'
  },
  'identity-connected': {
    subject: '{service}: {upstream} was connected to your account',
    heading: '{upstream} was connected to your account',
    text: 'An account at {upstream} was connected to your account at {service}. It can be used to sign in to your account.\n\nTime: {time}. From: {place}.\n\nIf this wasn\u2019t you, set a new password, disconnect {upstream} on your account page, and [contact {service} support].'
  },
  undone: {
    subject: '{service}: recent changes were undone',
    heading: 'Recent changes were undone',
    text: 'Everything added to your account at {service} in the last few days was removed. Every browser and app was signed out, and your password no longer works.\n\nSet a new password to get back in.',
    button: 'Set a new password',
    note: 'This link works once and expires in an hour.'
  },
  'undone-only': {
    subject: '{service}: recent changes were undone',
    heading: 'Recent changes were undone',
    text: 'Everything added to your account at {service} in the last few days was removed. Every browser and app was signed out. You still sign in with {upstream}.\n\nIf you can\u2019t sign in there, [contact {service} support].',
    button: 'Sign in'
  },
  'undone-enrol': {
    subject: '{service}: set up two-step verification',
    heading: 'Set up two-step verification',
    text: 'Your account at {service} requires two-step verification. The method that was added was removed with the changes you undid.\n\nFirst set a new password with the link in our other email. Then use this link to set up two-step verification again.',
    button: 'Set up two-step verification',
    note: 'This link works once and expires in 72 hours. Don\u2019t share it with anyone.'
  },
  'secret-expiring': {
    subject: '{service}: a secret of your app expires soon',
    heading: 'A secret of your app expires soon',
    text: 'A secret of your developer app at {service} expires soon. After that, programs that use it can\u2019t get new tokens.\n\nClient ID: {client}. The secret ends with {last4}. It expires {time}.\n\nAdd a new secret, give it to these programs, and then remove the old one.',
    button: 'Open app'
  },
  'service-token-added': {
    subject: '{service}: a service token was created',
    heading: 'A service token was created',
    text: 'An administrator created a service token for an app at {service}. Anyone who has the token can act as this app until it expires or is removed.\n\nClient ID: {client}. The token ends with {last4}. Time: {time}.\n\nIf you don\u2019t know why, [contact {service} support].'
  },
  'service-token-expiring': {
    subject: '{service}: a service token expires soon',
    heading: 'A service token expires soon',
    text: 'A service token of an app at {service} expires soon. After that, programs that use it get no access.\n\nClient ID: {client}. The token ends with {last4}. It expires {time}.\n\nAn administrator can create a new one. Give it to these programs, and then remove the old one.'
  },
  'personal-token-added': {
    subject: '{service}: a personal access token was created',
    heading: 'A personal access token was created',
    text: 'A personal access token was created for your account at {service}. Anyone who has the token can act for you, as far as it allows, until it expires or is removed.\n\nThe token ends with {last4}. Time: {time}. Device: {place}.\n\nIf this wasn\u2019t you, remove the token and change your password.',
    button: 'Manage tokens'
  },
  'personal-token-expiring': {
    subject: '{service}: a personal access token expires soon',
    heading: 'A personal access token expires soon',
    text: 'A personal access token of your account at {service} expires soon. After that, programs that use it get no access.\n\nThe token ends with {last4}. It expires {time}.\n\nCreate a new one, give it to these programs, and then remove the old one.',
    button: 'Manage tokens'
  },
  deleted: {
    subject: '{service}: your account was deleted',
    heading: 'Your account was deleted',
    text: 'Your account at {service} was deleted, together with your profile, your sessions and your developer apps.\n\nIf this wasn\u2019t you, [contact {service} support].'
  },
  test: {
    subject: '{service}: test email',
    heading: 'Test email',
    text: '{service} can send emails.'
  }
} as const

/** The texts of another language. */
export type MailTextSource = Translated<typeof en>

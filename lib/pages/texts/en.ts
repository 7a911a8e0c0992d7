import type { EventType } from '../../events/types.ts'
import { API_SCOPES } from '../../api-scopes.ts'
import type { Html } from '../html.ts'
import type { Compiled, Translated } from './template.ts'

/**
 * Every text of the pages, in English. Other languages have the same keys: the compiler names one that is missing. A name or a
 * number in a text is a placeholder, `{app}`. A text that depends on a number has plural forms. A sentence is one text, because
 * languages order their words differently.
 */
export const en = {
  common: {
    /** The document title of a page that shows an error: screen readers announce it first. */
    errorTitle: 'Error: {title}',
    continue: 'Continue',
    cancel: 'Cancel',
    account: 'Account',
    password: 'Password',
    signedInAs: 'You are signed in as {account}.',
    goBack: 'Go back to {app}',
    /** Before a link to an app that the operator does not vouch for. */
    uncheckedApp: 'The following link leads to {target}. The operator of this service has not checked this app. Open it only if you know and trust it, and do not type the password of this account there.',
    theApp: 'the app',
    toAccount: 'Go to your account',
    goBackToSignIn: 'Go back to the sign-in',
    help: 'Help',
    terms: 'Terms of use',
    privacy: 'Privacy',
    /** Names the links that choose the language of a page. */
    languages: 'Language'
  },
  errors: {
    heading: 'That did not work',
    /** Before the code and the English description of an OAuth error. */
    forDevelopers: 'For the developers of the app:',
    refused: 'The request cannot be answered.',
    wrongPassword: 'The account or the password is wrong.',
    signInChanged: 'Your account has changed meanwhile. Sign in again.',
    wrongCode: 'The code is wrong, or was used already.',
    codeClosed: 'There were too many wrong codes. Use another way, or ask an administrator to open this one.',
    tooManyCodes: 'There were too many wrong codes. Sign in again.',
    factorMissing: 'This account needs a second factor to sign in, and has none. Ask the operator of this service.',
    tooMany: 'Too many attempts. Try again later.',
    tooManySeconds: { one: 'Too many attempts. Try again in {seconds} second.', other: 'Too many attempts. Try again in {seconds} seconds.' },
    passwordClosed: 'There were too many wrong attempts. Set a new password, or ask an administrator to open this one.',
    passwordShort: {
      one: 'The new password is too short. It needs at least {characters} character.',
      other: 'The new password is too short. It needs at least {characters} characters.'
    },
    passwordCommon: 'The new password is one of the most common ones. Choose another.',
    passwordName: 'The new password must not be your account or the name of the service.',
    ourSide: 'Something went wrong on our side. Try again in a moment.',
    notFound: 'There is nothing here.',
    tooLarge: 'The form is too large.',
    otherSite: 'The form was sent from another site.',
    signInOver: 'This sign-in is over, or was started in another browser. Go back to the app and start again.',
    pageExpired: 'This page has expired, or was opened in another browser. Go back to the app and start again.'
  },
  signIn: {
    title: 'Sign in',
    toContinue: 'to continue to {app}',
    toAccount: 'to see and change your account',
    again: 'Confirm that it is you',
    againWhy: 'You signed in more than ten minutes ago. Type your password again to go on.',
    submit: 'Sign in',
    forgot: 'Forgot your password?',
    signUp: 'Create an account'
  },
  secondStep: {
    title: { totp: 'Enter the code of your app', recovery: 'Enter a recovery code' },
    why: {
      totp: 'Your authenticator app shows a code of six digits for this account.',
      recovery: 'Use one of the codes that you kept when you set up the second factor. Each of them works once.'
    },
    label: { totp: 'Code of the app', recovery: 'Recovery code' },
    other: { totp: 'Use your authenticator app', recovery: 'Use a recovery code' },
    lost: 'Have you lost your device and your recovery codes? Ask the operator of this service.'
  },
  consent: {
    title: 'Continue to {app}',
    heading: 'Continue to {app}',
    otherAccount: 'Use another account',
    asks: 'The app asks to:',
    asksAt: 'The app asks to, at {resource}:',
    vouched: 'The operator of this service vouches for this app.',
    unvouched: 'The operator of this service has not checked this app. Allow it only if you know and trust it.',
    registeredBy: 'It was registered by somebody with an address at {domain}.',
    sentTo: 'You will be sent to {target}.',
    targetLinks: 'an app on this device that opens {scheme} links',
    targetDevice: 'a program on this device ({host})',
    allow: 'Allow',
    deny: 'Deny'
  },
  /** The standard scopes, and the API's own. A declared scope has the words of its resource. */
  scopes: {
    openid: 'know who you are',
    profile: 'read your name',
    email: 'read your email address',
    roles: 'read your roles',
    /** `roles` in a request for an API: the app gets the power of the roles there. */
    rolesAt: 'act at {resource} with all your roles',
    offline_access: 'stay signed in when you are not using it',
    ...API_SCOPES,
    /** A free scope, which only its app knows the meaning of. */
    other: 'use {scope}'
  },
  /** The page at the root of the service. */
  home: {
    title: 'Your account',
    text: 'With this service you sign in to apps. Here you see and change your account, and where you are signed in.',
    docs: 'API documentation'
  },
  /** The pages of links that were mailed or handed over. */
  links: {
    gone: 'This link was used or replaced, has expired, or is not complete.',
    goneInvitation: 'This link was used or replaced, has expired, or is not complete. If you have not set a password yet, ask whoever invited you for another one.',
    askAgain: 'Ask for a new link',
    toAddress: 'Go to your email address',
    continue: 'Continue',
    continueTo: 'Continue to {app}',
    forgot: {
      title: 'Forgot your password?',
      why: 'Type your account, and we mail a link that sets a new password to its address.',
      field: 'Account or email address',
      submit: 'Send the link'
    },
    signUp: {
      title: 'Create an account',
      why: 'Type your email address, and we mail a link that creates your account.',
      field: 'Email address',
      submit: 'Send the link',
      agree: 'By creating an account you agree to the {terms}.',
      agreeTerms: 'terms of use',
      inform: 'How your data is used is in the {privacy}.',
      informPrivacy: 'privacy notice',
      haveOne: 'Sign in with an account that you have',
      notAddress: 'Type an email address, such as ann@example.com.',
      otherDomain: 'This address cannot sign up here. Type another one.'
    },
    invalidAccount: 'Type an account or an email address.',
    sent: {
      title: 'Look at your mail',
      forgot: 'If {typed} is an account with an email address, a link that sets a new password is on its way. It expires in an hour.',
      signUp: 'A link is on its way to {typed}. It expires in 24 hours.',
      hint: 'Nothing has come after some minutes? Look among the unwanted mail, and check what you typed.',
      again: 'You have asked for the link again. The mail may take some minutes.',
      sendAgain: 'Send it again',
      correct: 'Correct what you typed'
    },
    setPassword: {
      reset: { title: 'Set a new password', submit: 'Set the password' },
      invite: { title: 'Choose a password', submit: 'Use my account' },
      'sign-up': { title: 'Choose a password', submit: 'Create the account' },
      forAccount: 'for {account}',
      field: 'New password',
      hint: { one: 'At least {characters} character; the longer the better.', other: 'At least {characters} characters; the longer the better.' }
    },
    verify: { title: 'Confirm your address', text: 'Confirm that this address is yours.', submit: 'Confirm the address' },
    change: {
      title: 'Confirm the new address',
      text: '{address} becomes the address of the account {account}.',
      stranger: 'If this is not your account, close this page. Nothing changes then.',
      signIn: 'Sign in to confirm',
      other: 'Only the account above can confirm the change.',
      signOut: 'Sign out, and sign in to that account',
      submit: 'Confirm the address'
    },
    undo: {
      title: 'Undo the change of your address',
      text: 'This restores your former address, signs out every browser and app, ends your password, and mails a link that sets a new one.',
      submit: 'Undo the change'
    },
    undoFactor: {
      title: 'Remove the second factor',
      text: 'This removes every second factor that was added since, signs out every browser and app, ends your password, and mails a link that sets a new one.',
      submit: 'Remove it'
    },
    done: {
      'factor-undone': { title: 'The second factor is removed', text: 'Every browser and app was signed out, and your password no longer works. Look at your mail: set a new one with the link that we sent.' },
      password: { title: 'Your password is set', text: 'You were signed out everywhere. Sign in with the new password.' },
      account: { title: 'Your account is ready', text: 'Sign in with your password.' },
      verified: { title: 'Your address is confirmed', text: 'It belongs to your account now.' },
      undone: { title: 'The change is undone', text: 'Every browser and app was signed out, and your password no longer works. Look at your mail: set a new one with the link that we sent.' }
    }
  },
  device: {
    title: 'Connect a device',
    own: 'Continue only if you are signing in on your own device.',
    code: 'Code shown on the device',
    codeHint: 'Eight letters, such as WDJB-MJHT',
    compareHeading: 'Does your device show this code?',
    compareWarning: 'Continue only if you have just started to sign in on your own device, and it shows the same code now. If somebody sent you this link or code, close this page.',
    compareSame: 'My device shows this code',
    compareOther: 'Type another code',
    confirmTitle: 'Is this your device?',
    confirmText: '{app} asks to sign in as you. Continue only if you started this and the device shows this code:',
    willSignIn: 'You will be asked to sign in.',
    cameFrom: 'The request came from {address}.',
    mine: 'It is mine',
    notMine: 'It is not',
    doneTitle: 'Device connected',
    doneText: 'You are signed in to {app} on the device. You can close this page.',
    noCode: 'Type the code that the device shows.',
    unknownCode: 'There is no such code. Check the code on the device.',
    expiredCode: 'The code has expired. Start again on the device.',
    usedCode: 'The code was used already. Start again on the device.',
    refused: 'The device was refused.',
    failed: 'That did not work. Start again on the device.'
  },
  signOut: {
    title: 'Sign out',
    heading: 'Sign out?',
    byApp: '{app} has signed you out.',
    everywhere: 'Signing out here also signs you out of the apps that you signed in to from this browser.',
    submit: 'Sign out',
    stay: 'Stay signed in',
    doneTitle: 'Signed out',
    done: 'You are signed out.',
    doneOf: 'You are signed out of {app}.'
  },
  account: {
    navigation: 'Your account',
    /** By the path below that of the account pages. */
    sections: {
      profile: 'Profile',
      password: 'Password',
      factors: 'Second factor',
      email: 'Email address',
      sessions: 'Where you are signed in',
      apps: 'Connected apps',
      activity: 'Activity',
      clients: 'Apps you registered',
      delete: 'Delete the account'
    },
    /** What a form has done. */
    done: {
      name: 'Your name was changed.',
      password: 'Your password was changed. You were signed out everywhere else.',
      factor: 'Your second factor is on. A sign-in asks for a code now.',
      'factor-more': 'The authenticator app was added.',
      'factor-removed': 'The authenticator app was removed.',
      codes: 'Your new recovery codes are good from now on. The former ones work no more.',
      verification: 'A link is on its way to your address.',
      address: 'A link is on its way to the new address. It becomes yours when you open the link there; until then nothing changes.',
      ended: 'That session has ended.',
      others: 'You are signed out everywhere else.',
      disconnected: 'The app is disconnected.',
      renewed: 'The app has a new secret. The old one and the tokens of the app work no more.',
      removed: 'The app was deleted.'
    },
    signOut: 'Sign out',
    save: 'Save',
    end: 'End',
    /** After the visible text of one of several like buttons, for screen readers. */
    ofWhat: ': {what}',
    more: { one: 'and {count} more', other: 'and {count} more' },
    nextPage: 'Next page',
    name: 'Name',
    nameHint: 'As apps that may read your name show it.',
    memberSince: 'You have had this account since {date}.',
    currentPassword: 'Current password',
    code: 'Code of your second factor',
    codeHint: 'Six digits from your authenticator app, or a recovery code.',
    newPassword: 'New password',
    changePassword: 'Change password',
    passwordEffect: 'A new password signs you out of every other browser and app.',
    factorsWhy: 'With a second factor, your password alone opens your account to nobody. A sign-in then also asks for a code from an app on your phone.',
    noFactors: 'You have no second factor.',
    authenticator: 'Authenticator app',
    addedAt: 'Added {time}',
    remove: 'Remove',
    removeQuestion: 'Remove {what}?',
    removeWhy: 'Its codes work no more. Your other second factors stay.',
    removeLastWhy: 'It is your last second factor. Your password alone is then enough to sign in, and your recovery codes work no more.',
    lastWay: 'This account needs a second factor, and this is the last one. Add another one first.',
    mostFactors: 'You cannot add more of them. Remove one first.',
    enrolmentOver: 'This has ended, or took too long. Begin again.',
    addApp: 'Add an authenticator app',
    addAppWhy: 'You need an app that shows codes of six digits, such as the one of your password manager.',
    appName: 'Name of the app',
    appNameHint: 'For you only, such as the name of your phone. You may leave it empty.',
    scan: 'Scan this code with the app.',
    qr: 'QR code for an authenticator app. The key below is the same as text.',
    typeSeed: 'If you cannot scan it, type this key in the app:',
    openApp: 'Open an app on this device',
    firstCode: 'Code that the app shows',
    proved: 'The code was right. One step is left.',
    codes: 'Recovery codes',
    codesLeft: { one: '{count} code is left.', other: '{count} codes are left.' },
    newCodes: 'Make new recovery codes',
    newCodesWhy: 'The codes that you have work no more when the new ones are good.',
    keepCodes: 'If you lose your device, only one of these codes lets you in. Each of them works once. They are shown only now: keep them where you find them without the device.',
    codesOf: 'Recovery codes of {account}',
    downloadCodes: 'Download the codes',
    printCodes: 'You can also print this page, or write them down.',
    kept: 'I have kept the codes',
    turnOn: 'Turn the second factor on',
    useCodes: 'Use these codes from now on',
    keepFirst: 'Confirm that you have kept the codes. New ones were not made.',
    browsers: 'Browsers',
    browsersWhy: 'Ending one also signs you out of the apps that you signed in to from it.',
    appSessions: 'Apps',
    noAppSessions: 'No app is signed in to your account.',
    thisBrowser: 'This browser',
    /** The name of a browser and of its system. */
    browserOn: '{browser} on {system}',
    unknownBrowser: 'Unknown browser',
    from: 'from {place}',
    signedInAt: 'Signed in {time}',
    lastUsedAt: 'Last used {time}',
    endOthers: 'Sign out everywhere else',
    noApps: 'No app is connected to your account.',
    mayDo: 'It may:',
    unvouched: 'The operator of this service has not checked this app.',
    connectedAt: 'Connected {time}',
    disconnect: 'Disconnect',
    disconnectQuestion: 'Disconnect {app}?',
    disconnectWarning: 'The app is signed out everywhere, and must ask you again before it may do anything. What it knows already, it may keep.',
    activityWhy: 'The last events about your account, the newest first. If something was not you, set a new password: that signs out everybody else.',
    timesInUtc: 'All times are in UTC, which may differ from the time where you are.',
    noEvents: 'Nothing has happened yet.',
    clientActivity: 'Apps you registered, on their own',
    clientActivityWhy: 'What these apps did with their own secrets, without anybody signed in. If it was not your app, give it a new secret.',
    /** How something was done. */
    by: {
      page: 'In a browser',
      app: 'Through an app',
      operator: 'By the operator of this service'
    },
    app: 'App: {app}',
    deletedApp: 'one that was deleted',
    namelessApp: 'one without a name',
    granted: 'Given: {roles}',
    removedRoles: 'Taken: {roles}',
    times: { one: '{count} time', other: '{count} times' },
    failed: 'Failed',
    clientId: 'Client ID',
    secret: 'Secret',
    showSecret: 'Show the secret',
    renewSecret: 'Make a new secret',
    renewQuestion: 'Make a new secret for {app}?',
    renewWarning: 'The old secret and all tokens of the app stop working at once.',
    deleteClient: 'Delete the app',
    deleteQuestion: 'Delete {app}?',
    deleteWarning: 'Nobody can sign in to the app any more, and its tokens stop working at once. This cannot be undone.',
    disabled: 'An administrator has disabled this app.',
    public: 'Public: without a secret',
    confidential: 'With a secret',
    redirectUris: 'Redirect URIs',
    scopes: 'Scopes',
    none: 'None',
    registeredAt: 'Registered',
    verifiedAddress: 'Your address is {address}. Mails about your account go there.',
    unverifiedAddress: 'You have not shown yet that {address} is yours.',
    noAddress: 'Your account has no address. With one you can set a new password when you forget it.',
    sendVerification: 'Send a link to it',
    firstAddress: 'Email address',
    firstEffect: 'It becomes yours when you open the link that we send there.',
    newAddress: 'New email address',
    changeAddress: 'Send a link to the new address',
    changeEffect: 'Your former address gets a mail with which the change can be undone for 72 hours.',
    wrongAddress: 'Type another address, such as ann@example.com.',
    deleteWhy: 'Your profile, your sessions and the apps that you registered are deleted at once. This cannot be undone.',
    deleteApps: { one: 'You registered {apps} app, which stops working.', other: 'You registered {apps} apps, which stop working.' },
    deleteAccount: 'Delete my account',
    lastAdmin: 'You are the last administrator. Make somebody else one first.',
    deletedTitle: 'Account deleted',
    deleted: 'Your account was deleted.',
    wrongCurrent: 'The current password is wrong.',
    vouchedFor: 'The operator of this service vouches for this app, so only an administrator may change it or see its secret.',
    refused: 'That could not be done.'
  },
  /** What happened to an account, or through it, by type. */
  events: {
    'user.created': 'Your account was created',
    'user.invited': 'You were invited',
    'user.signed_up': 'You created your account',
    'user.updated': 'Your profile was changed',
    'user.roles_changed': 'Your roles were changed',
    'user.disabled': 'Your account was disabled',
    'user.enabled': 'Your account was enabled again',
    'user.verified': 'Your address was confirmed',
    'user.password_changed': 'Your password was changed',
    'user.password_reset': 'A password was set with a link',
    'user.recovery_started': 'You were given a link to set a password',
    'user.verification_requested': 'A link to confirm your address was requested',
    'user.email_change_requested': 'A change of your address was requested',
    'user.email_changed': 'Your address was changed',
    'user.email_restored': 'A change of your address was undone',
    'user.confirmation_failed': 'Your current password was typed wrongly',
    'user.unlocked': 'Your password was opened after too many wrong attempts',
    'user.sessions_ended': 'Your sessions were ended',
    'user.deleted': 'Your account was deleted',
    'factor.added': 'You added a second factor',
    'factor.removed': 'You removed a second factor',
    'factor.failed': 'Somebody entered a wrong code for your second factor',
    'factor.closed': 'A second factor was closed after too many wrong codes',
    'factor.opened': 'A second factor was opened again',
    'factor.reset': 'An administrator removed your second factors',
    'factor.undone': 'Second factors were removed with a link from a mail',
    'recovery.used': 'A recovery code was used',
    'recovery.renewed': 'You made new recovery codes',
    'sign_in.succeeded': 'You signed in',
    'sign_in.failed': 'A sign-in was refused',
    'session.ended': 'An app was signed out',
    'token.revoked': 'A token of an app was revoked',
    'browser.signed_out': 'A browser was signed out',
    'app.connected': 'You allowed an app what it asked for',
    'device.connected': 'You connected a device',
    'app.disconnected': 'An app was disconnected',
    'client.created': 'An app was registered',
    'client.updated': 'An app that you registered was changed',
    'client.secret_changed': 'An app that you registered got a new secret',
    'client.deleted': 'An app that you registered was deleted',
    'resource.created': 'A resource was declared',
    'resource.updated': 'A resource was changed',
    'resource.deleted': 'A resource was deleted',
    'webhook.created': 'A webhook was created',
    'webhook.updated': 'A webhook was changed',
    'webhook.secret_changed': 'A webhook got a new secret',
    'webhook.replayed': 'Events were sent to a webhook again',
    'webhook.disabled': 'A webhook was disabled',
    'webhook.deleted': 'A webhook was deleted',
    'key.rotated': 'A signing key was rotated',
    'key.resealed': 'Stored secrets were sealed with another key',
    'mail.retried': 'A mail was sent again',
    'logout.retried': 'An app was notified again that you had signed out',
    'operation.refused': 'An operation for administrators was refused'
  } satisfies Record<EventType, string>
} as const

/** The texts of a language. */
export type Texts = Compiled<typeof en>

/** The source of the texts of another language. */
export type TextSource = Translated<typeof en>

/** A text that is chosen before the language of the page is known. */
export type Message = (texts: Texts) => string | Html

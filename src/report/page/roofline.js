// Operators against what the chip does at most.

function showRoofline() {
  document.querySelector('#roofline .body').append(noProfile('The roofline'));
}

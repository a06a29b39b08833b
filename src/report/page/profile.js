// Device time by node and module, as ttc profile says it.

function joinProfile() {}
const profileDetails = () => [];
const profileTiles = () => [];
const noProfile = (what) => missing(`${what} is not in this page. It is printed by`, `ttc profile ${modelName} --arch ${data.arch.name}`);

function showProfile() {
  document.querySelector('#time .body').append(noProfile('Device time'));
}
